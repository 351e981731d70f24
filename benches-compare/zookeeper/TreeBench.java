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

    private static double[] life(int[] parents, String[] created, String[] asked) throws Exception {
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
        for (int at = 0; at < created.length; at++) {
            tree.createNode(created[at], data.clone(), acl, 0, ++cversions[parents[at]], zxid++, 1);
        }
        seconds[0] = (System.nanoTime() - start) / 1e9;
        Stat stat = new Stat();
        start = System.nanoTime();
        for (String path : asked) {
            sink += tree.getData(path, stat, null).length + stat.getVersion();
        }
        seconds[1] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (String path : asked) {
            sink += tree.statNode(path, null).getVersion();
        }
        seconds[2] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (String path : asked) {
            tree.setData(path, data.clone(), 1, zxid++, 2);
        }
        seconds[3] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (String path : created) {
            sink += tree.getData(path, stat, null).length + stat.getVersion();
        }
        seconds[4] = (System.nanoTime() - start) / 1e9;
        start = System.nanoTime();
        for (String path : asked) {
            tree.deleteNode(path, zxid++);
        }
        seconds[5] = (System.nanoTime() - start) / 1e9;
        return seconds;
    }

    public static void main(String[] args) throws Exception {
        int nodes = Integer.parseInt(args[0]);
        int[] order = shuffled(nodes);
        int[] parents = new int[nodes];
        String[] created = new String[nodes];
        for (int at = 0; at < nodes; at++) {
            parents[at] = order[at] % PARENTS;
            created[at] = path(order[at]);
        }
        // In an order of their own, one after the other in memory as requests are that have just come in.
        String[] asked = new String[nodes];
        for (int at = 0; at < nodes; at++) {
            asked[at] = new String(created[order[at]].toCharArray());
        }
        double[] best = new double[6];
        java.util.Arrays.fill(best, Double.MAX_VALUE);
        for (int life = 0; life < 4; life++) {
            double[] seconds = life(parents, created, asked);
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
