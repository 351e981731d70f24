//! smoke
#![allow(clippy::all, reason="x")]
use arborlog::*;
fn main(){
  let dir=std::env::args().nth(1).unwrap(); let th:usize=std::env::args().nth(2).unwrap().parse().unwrap(); let secs:f64=std::env::args().nth(3).unwrap().parse().unwrap();
  std::fs::create_dir_all(&dir).unwrap();
  let inflight:usize=std::env::var("Q").map(|s|s.parse().unwrap()).unwrap_or(2);
  let gather=match std::env::var("G").as_deref(){Ok("off")=>Gather::Off,Ok("adaptive")|Err(_)=>Gather::Adaptive,Ok(us)=>Gather::Always(std::time::Duration::from_micros(us.parse().unwrap()))};
  let backend=if std::env::var("B").as_deref()==Ok("threads"){BackendChoice::Threads}else{BackendChoice::Auto};
  let (log,report)=LogOptions::new().backend(backend).group(GroupPolicy::new().in_flight_max(inflight).gather(gather)).open(&dir).unwrap();
  if std::env::var("V").is_ok(){println!("{report}");}
  let stop=std::sync::atomic::AtomicBool::new(false);
  let t0=std::time::Instant::now();
  let mut lat:Vec<u32>=vec![];
  std::thread::scope(|s|{
    let hs:Vec<_>=(0..th).map(|_|{let log=&log;let stop=&stop;s.spawn(move||{let rec=[7u8;200];let mut l=vec![];while !stop.load(std::sync::atomic::Ordering::Relaxed){let t=std::time::Instant::now();log.append_next(Epoch::ZERO,5,&rec).unwrap().wait().unwrap();l.push(t.elapsed().as_micros() as u32);}l})}).collect();
    std::thread::sleep(std::time::Duration::from_secs_f64(secs)); stop.store(true,std::sync::atomic::Ordering::Relaxed);
    for h in hs{lat.extend(h.join().unwrap());}
  });
  let el=t0.elapsed().as_secs_f64(); lat.sort(); let n=lat.len();
  let st=log.stats();
  println!("q{inflight} {gather:?} th {th:4} {:8.0}/s p50 {:5} p99 {:6} p999 {:6} recs/sync {:.1} bytes/rec {:.0} rolls {} sync p50 {:?}",n as f64/el,lat[n/2],lat[n*99/100],lat[n*999/1000],st.records as f64/st.syncs as f64,st.group_bytes as f64/st.records as f64,st.rolls,st.sync_p50);
  log.close().unwrap();
  if std::env::var("R").is_ok(){
    let t=std::time::Instant::now(); let (log,report)=LogOptions::new().backend(backend).open(&dir).unwrap(); println!("{report}"); let o=t.elapsed();
    let t=std::time::Instant::now(); let mut r=log.reader(Zxid::ZERO).unwrap(); let mut c=0u64; while let Some(x)=r.next_record().unwrap(){c+=1; assert_eq!(x.payload.len(),200);} let e=t.elapsed();
    println!("open {o:?} read {c} in {e:?} = {:.1} M/s; both {:.1} M/s",c as f64/e.as_secs_f64()/1e6, c as f64/(e+o).as_secs_f64()/1e6);
  }
}
