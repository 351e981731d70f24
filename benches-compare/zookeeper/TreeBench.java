import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.DataTree;

/**
 * ZooKeeper's own DataTree on the work of `cargo bench --bench tree`: the same paths, data and order. Prints one line
 * for each operation: its name and the best operations per second of some lives of a tree.
 */
public final class TreeBench {
    private static final int PARENTS = 1000;
    private static final String[] NAMES =
        {"create_random", "get_random", "exists_random", "set_random", "get_in_order", "delete_random"};

    private static String path(int node) {
        return String.format("/bench/p%07d/node-%011d", node % PARENTS, node);
    }

    private static int[] shuffled(int count) {
        int[] order = new int[count];
        for (int at = 0; at < count; at++) {
            order[at] = at;
        }
        long state = 0x9e3779b97f4a7c15L;
        for (int at = count - 1; at >= 1; at--) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            int other = (int) ((state >>> 33) % (at + 1));
            int kept = order[at];
            order[at] = order[other];
            order[other] = kept;
        }
        return order;
    }

    private static long sink;

    private static double[] life(String[] paths, int[] order) throws Exception {
        byte[] data = new byte[100];
        List<ACL> acl = new ArrayList<>(ZooDefs.Ids.OPEN_ACL_UNSAFE);
        DataTree tree = new DataTree();
        long zxid = 1;
        tree.createNode("/bench", new byte[0], acl, 0, 1, zxid++, 1);
        for (int parent = 0; parent < PARENTS; parent++) {
            tree.createNode(String.format("/bench/p%07d", parent), new byte[0], acl, 0, parent + 1, zxid++, 1);
        }
        int[] cversions = new int[PARENTS];
        double[] seconds = new double[6];
        long start = System.nanoTime();
        for (int node : order) {
            tree.createNode(paths[node], data.clone(), acl, 0, ++cversions[node % PARENTS], zxid++, 1);
        }
        seconds[0] = (System.nanoTime() - start) / 1e9;
        Stat stat = new Stat();
        start = System.nanoTime();
        for (int node : order) {
            sink += tree.getData(paths[node], stat, null).length + stat.getVersion();
        }
        seconds[1] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (int node : order) {
            sink += tree.statNode(paths[node], null).getVersion();
        }
        seconds[2] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (int node : order) {
            tree.setData(paths[node], data.clone(), 1, zxid++, 2);
        }
        seconds[3] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (String path : paths) {
            sink += tree.getData(path, stat, null).length + stat.getVersion();
        }
        seconds[4] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (int node : order) {
            tree.deleteNode(paths[node], zxid++);
        }
        seconds[5] = (System.nanoTime() - start) / 1e9;
        return seconds;
    }

    public static void main(String[] args) throws Exception {
        int nodes = Integer.parseInt(args[0]);
        String[] paths = new String[nodes];
        for (int node = 0; node < nodes; node++) {
            paths[node] = path(node);
        }
        int[] order = shuffled(nodes);
        double[] best = new double[6];
        java.util.Arrays.fill(best, Double.MAX_VALUE);
        for (int life = 0; life < 4; life++) {
            double[] seconds = life(paths, order);
            for (int at = 0; at < best.length; at++) {
                best[at] = Math.min(best[at], seconds[at]);
            }
        }
        for (int at = 0; at < best.length; at++) {
            System.out.printf("%s %.0f%n", NAMES[at], nodes / best[at]);
        }
        if (sink == 42) {
            System.out.println();
        }
    }
}
