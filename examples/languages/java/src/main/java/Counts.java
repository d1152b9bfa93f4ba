import java.util.List;
import java.util.random.RandomGenerator;

/** Counts with differential privacy. A release passes a java.security.SecureRandom. */
public final class Counts {
    private Counts() {}

    private static long geometric(double scale, RandomGenerator random) {
        return (long) (-scale * Math.log(1 - random.nextDouble()));
    }

    /** epsilon-DP for rows added or removed: discrete Laplace noise, the difference of two geometric numbers. */
    public static long noisyCount(List<?> rows, double epsilon, RandomGenerator random) {
        double scale = 1 / epsilon;
        return rows.size() + geometric(scale, random) - geometric(scale, random);
    }

    /** As noisyCount, with a bug: this division of whole numbers makes the scale 1 for 70 percent, not 1.43. */
    public static long noisyCountWithBug(List<?> rows, int epsilonPercent, RandomGenerator random) {
        double scale = 100 / epsilonPercent;
        return rows.size() + geometric(scale, random) - geometric(scale, random);
    }
}
