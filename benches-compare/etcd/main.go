// The same harness as the Rust program's, for etcd's write-ahead log. As in etcd itself, one goroutine
// owns the log: it saves everything that waits with one call, and then tells every waiter. The writers
// are goroutines, since that is what a Go server has; with `--log etcd-threads` each of them keeps an
// operating system's thread to itself, so that waiting and waking cost what they cost the other logs.
package main

import (
	"encoding/binary"
	"fmt"
	"io/ioutil"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/raft/raftpb"
	"go.etcd.io/etcd/wal"
	"go.etcd.io/etcd/wal/walpb"
	"go.uber.org/zap"
)

// The phases of a run, as in the Rust harness.
const (
	warmUp int32 = iota
	measure
	stop
)

// options are the words after the mode, in pairs.
type options map[string]string

func (o options) number(name string) float64 {
	value, err := strconv.ParseFloat(o[name], 64)
	must(err, "read "+name)
	return value
}

func main() {
	words := options{}
	for i := 2; i+1 < len(os.Args); i += 2 {
		words[os.Args[i]] = os.Args[i+1]
	}
	switch os.Args[1] {
	case "child-cell":
		cell(words)
	case "child-fill":
		fill(words)
	case "child-recover":
		reopen(words)
	default:
		fmt.Fprintln(os.Stderr, "unknown mode", os.Args[1])
		os.Exit(1)
	}
}

// request is one record with the channel that its writer waits on.
type request struct {
	data []byte
	done chan struct{}
}

// log is the write-ahead log with the goroutine that owns it.
type log struct {
	wal      *wal.WAL
	requests chan request
}

func openLog(dir string) *log {
	// The log wants to create its directory itself.
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "wal"), nil)
	must(err, "create the log")
	return &log{wal: w, requests: make(chan request, 4096)}
}

// serve saves what waits, group by group, until the channel is closed. Entries alone make Save sync;
// the hard state, which etcd would save beside them, is left out as no other log here has one.
func (l *log) serve() {
	var index uint64
	var waiting []request
	var entries []raftpb.Entry
	for first := range l.requests {
		waiting = append(waiting[:0], first)
	gather:
		for {
			select {
			case next, open := <-l.requests:
				if !open {
					break gather
				}
				waiting = append(waiting, next)
			default:
				break gather
			}
		}
		entries = entries[:0]
		for _, r := range waiting {
			index++
			entries = append(entries, raftpb.Entry{Term: 1, Index: index, Data: r.data})
		}
		must(l.wal.Save(raftpb.HardState{}, entries), "save a group")
		for _, r := range waiting {
			r.done <- struct{}{}
		}
	}
}

// writer is one goroutine's counts.
type writer struct {
	latencies histogram
	total     uint64
}

func (w *writer) run(l *log, phase *int32, number, bytes int) {
	data := record(uint64(number), bytes)
	done := make(chan struct{}, 1)
	for atomic.LoadInt32(phase) != stop {
		binary.LittleEndian.PutUint64(data, w.total)
		started := time.Now()
		l.requests <- request{data, done}
		<-done
		w.total++
		if atomic.LoadInt32(phase) == measure {
			w.latencies.record(uint64(time.Since(started)))
		}
	}
}

func cell(words options) {
	dir := words["--dir"]
	l := openLog(dir)
	sleep(words.number("--rest"))
	go l.serve()
	var phase int32
	var running sync.WaitGroup
	inThreads := words["--log"] == "etcd-threads"
	writers := make([]writer, int(words.number("--threads")))
	for i := range writers {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			if inThreads {
				runtime.LockOSThread()
			}
			writers[i].run(l, &phase, i, int(words.number("--bytes")))
		}(i)
	}
	sleep(words.number("--warm-up"))
	cpu, bytes, flushes := cpuSeconds(), deviceCounter(dir, 6), deviceCounter(dir, 15)
	started := time.Now()
	atomic.StoreInt32(&phase, measure)
	sleep(words.number("--seconds"))
	atomic.StoreInt32(&phase, stop)
	seconds := time.Since(started).Seconds()
	cpu = cpuSeconds() - cpu
	bytes = deviceCounter(dir, 6) - bytes
	flushes = deviceCounter(dir, 15) - flushes
	running.Wait()
	close(l.requests)
	var all histogram
	var total uint64
	for i := range writers {
		all.merge(&writers[i].latencies)
		total += writers[i].total
	}
	must(l.wal.Close(), "close the log")
	fmt.Printf(`{"commits":%d,"total":%d,"seconds":%f,"p50_us":%f,"p99_us":%f,"p999_us":%f,`+
		`"cpu_seconds":%f,"device_bytes":%f,"flushes":%f}`+"\n",
		all.count, total, seconds, all.micros(0.5), all.micros(0.99), all.micros(0.999),
		cpu, bytes*512, flushes)
}

func fill(words options) {
	const batch = 1000
	l := openLog(words["--dir"])
	records := uint64(words.number("--records"))
	data := make([][]byte, batch)
	for i := range data {
		data[i] = record(uint64(i), int(words.number("--bytes")))
	}
	var index uint64
	for index < records {
		var entries []raftpb.Entry
		for i := 0; i < batch && index < records; i++ {
			index++
			binary.LittleEndian.PutUint64(data[i], index)
			entries = append(entries, raftpb.Entry{Term: 1, Index: index, Data: data[i]})
		}
		must(l.wal.Save(raftpb.HardState{}, entries), "save a batch")
	}
	must(l.wal.Close(), "close the log")
	fmt.Printf(`{"records":%d}`+"\n", index)
}

func reopen(words options) {
	started := time.Now()
	w, err := wal.Open(zap.NewNop(), filepath.Join(words["--dir"], "wal"), walpb.Snapshot{})
	must(err, "open the log")
	_, _, entries, err := w.ReadAll()
	must(err, "read the log")
	var bytes int
	for i := range entries {
		bytes += len(entries[i].Data)
	}
	seconds := time.Since(started).Seconds()
	fmt.Printf(`{"records":%d,"bytes":%d,"seconds":%f,"peak_memory_mb":%f}`+"\n",
		len(entries), bytes, seconds, peakMemoryMB())
}

// histogram is log-linear with 64 steps per power of two, as the Rust one.
type histogram struct {
	counts [64 * 37]uint64
	count  uint64
}

func (h *histogram) record(nanos uint64) {
	bucket := nanos
	if nanos >= 64 {
		shift := uint64(bits.Len64(nanos) - 7)
		bucket = 64*(shift+1) + (nanos>>shift - 64)
	}
	if last := uint64(len(h.counts) - 1); bucket > last {
		bucket = last
	}
	h.counts[bucket]++
	h.count++
}

func (h *histogram) merge(other *histogram) {
	for i := range h.counts {
		h.counts[i] += other.counts[i]
	}
	h.count += other.count
}

func (h *histogram) micros(q float64) float64 {
	rank, seen := q*float64(h.count), uint64(0)
	for bucket, count := range h.counts {
		seen += count
		if count > 0 && float64(seen) >= rank {
			if bucket < 64 {
				return float64(bucket) / 1000
			}
			shift := uint64(bucket/64 - 1)
			low := uint64(64+bucket%64) << shift
			return float64(low+(uint64(1)<<shift)/2) / 1000
		}
	}
	return 0
}

// record is a pseudo-random record (xorshift), as the Rust one.
func record(seed uint64, bytes int) []byte {
	state := seed*0x9e3779b97f4a7c15 | 1
	data := make([]byte, bytes)
	for i := range data {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		data[i] = byte(state)
	}
	return data
}

func sleep(seconds float64) {
	time.Sleep(time.Duration(seconds * float64(time.Second)))
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage), "getrusage")
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// deviceCounter is one field of the block device's statistics, 0 where there are none.
func deviceCounter(dir string, field int) float64 {
	var stat syscall.Stat_t
	must(syscall.Stat(dir, &stat), "stat the directory")
	// The kernel's layout of device numbers below 2^20 majors and minors.
	major := stat.Dev >> 8 & 0xfff
	minor := stat.Dev&0xff | stat.Dev>>12&0xfff00
	text, err := ioutil.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", major, minor))
	fields := strings.Fields(string(text))
	if err != nil || field >= len(fields) {
		return 0
	}
	value, err := strconv.ParseFloat(fields[field], 64)
	must(err, "read the device's counters")
	return value
}

func peakMemoryMB() float64 {
	text, err := ioutil.ReadFile("/proc/self/status")
	must(err, "read the status")
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			must(err, "read VmHWM")
			return kilobytes / 1024
		}
	}
	return 0
}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(1)
	}
}
