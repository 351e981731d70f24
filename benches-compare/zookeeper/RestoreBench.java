import java.io.File;
import java.nio.file.Files;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.jute.Record;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnLog;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.txn.CreateTxn;
import org.apache.zookeeper.txn.SetDataTxn;
import org.apache.zookeeper.txn.TxnDigest;
import org.apache.zookeeper.txn.TxnHeader;

/**
 * Makes the directory of a server with ZooKeeper's own classes, and times ZooKeeper's own restore of it:
 * {@code make DIR NODES SETS}, a snapshot of so many nodes with 100 bytes under 1,000 parents and a log of so many
 * setData behind it, each with its digest; {@code restore DIR RUNS}, which also times a snapshot of what was restored.
 */
public final class RestoreBench {
    private static final int PARENTS = 1000;

    private static final class Server {
        final DataTree tree = new DataTree();
        long zxid;

        Record apply(int type, Record txn) {
            tree.processTxn(new TxnHeader(1, 1, ++zxid, 1_600_000_000_000L + zxid, type), txn);
            return txn;
        }
    }

    private static String path(int node) {
        return String.format("/bench/p%07d/node-%011d", node % PARENTS, node);
    }

    private static CreateTxn create(String path, byte[] data, int cversion) {
        return new CreateTxn(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, false, cversion);
    }

    private static void make(File dir, int nodes, int sets) throws Exception {
        Server server = new Server();
        int create = ZooDefs.OpCode.create;
        server.apply(create, create("/bench", new byte[0], 1));
        for (int parent = 0; parent < Math.min(PARENTS, nodes); parent++) {
            server.apply(create, create(String.format("/bench/p%07d", parent), new byte[0], parent + 1));
        }
        for (int node = 0; node < nodes; node++) {
            server.apply(create, create(path(node), new byte[100], node / PARENTS + 1));
        }
        FileTxnSnapLog files = new FileTxnSnapLog(dir, dir);
        files.save(server.tree, new ConcurrentHashMap<>(), true);
        files.close();
        FileTxnLog log = new FileTxnLog(new File(dir, "version-2"));
        long state = 0x9e3779b97f4a7c15L;
        for (int set = 0; set < sets; set++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            int node = (int) ((state >>> 33) % nodes);
            byte[] data = new byte[100];
            data[0] = (byte) set;
            Record txn = server.apply(ZooDefs.OpCode.setData, new SetDataTxn(path(node), data, set));
            TxnHeader header = new TxnHeader(1, 1, server.zxid, 1_600_000_000_000L + server.zxid, ZooDefs.OpCode.setData);
            log.append(header, txn, new TxnDigest(2, server.tree.getTreeDigest()));
            if (set % 1000 == 999) {
                log.commit();
            }
        }
        log.commit();
        log.close();
    }

    private static void restore(File dir, int runs) throws Exception {
        for (int run = 0; run < runs; run++) {
            System.gc();
            long start = System.nanoTime();
            FileTxnSnapLog files = new FileTxnSnapLog(dir, dir);
            DataTree tree = new DataTree();
            long zxid = files.restore(tree, new ConcurrentHashMap<>(), (header, txn, digest) -> { });
            double seconds = (System.nanoTime() - start) / 1e9;
            files.close();
            System.out.printf("restore %.3f s: %d nodes, zxid 0x%x, digest 0x%x%n", seconds, tree.getNodeCount(), zxid,
                tree.getTreeDigest());
            save(dir, tree);
        }
    }

    private static void save(File dir, DataTree tree) throws Exception {
        File saved = Files.createTempDirectory(dir.toPath(), "saved").toFile();
        FileTxnSnapLog files = new FileTxnSnapLog(saved, saved);
        long start = System.nanoTime();
        files.save(tree, new ConcurrentHashMap<>(), true);
        double seconds = (System.nanoTime() - start) / 1e9;
        files.close();
        System.out.printf("saved and synced in %.3f s: %.0f nodes/s%n", seconds, tree.getNodeCount() / seconds);
        File[] parts = new File(saved, "version-2").listFiles();
        for (File part : parts == null ? new File[0] : parts) {
            part.delete();
        }
        new File(saved, "version-2").delete();
        saved.delete();
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("make")) {
            make(new File(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        } else {
            restore(new File(args[1]), Integer.parseInt(args[2]));
        }
    }
}
