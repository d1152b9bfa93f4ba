import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.function.ToDoubleBiFunction;
import java.util.random.RandomGenerator;

/**
 * Answers requests of dpaudit: java -cp build Audit noisyCount
 *
 * <p>Copy this file, and name your mechanisms here. Each takes a dataset and a generator, and returns a number.
 */
public class Audit {
    static final Map<String, ToDoubleBiFunction<List<Double>, RandomGenerator>> MECHANISMS =
            Map.of(
                    "noisyCount", (rows, random) -> Counts.noisyCount(rows, 0.7, random),
                    "noisyCountWithBug", (rows, random) -> Counts.noisyCountWithBug(rows, 70, random));

    // A request is {"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}. With its seed, an audit can be repeated. A mechanism
    // that ignores the generator and draws from a SecureRandom can be audited as well.
    public static void main(String[] arguments) throws IOException {
        var mechanism = Objects.requireNonNull(MECHANISMS.get(arguments[0]), "no mechanism is named " + arguments[0]);
        var requests = new BufferedReader(new InputStreamReader(System.in));
        var answers = new PrintStream(System.out, false);
        for (String request; (request = requests.readLine()) != null; ) {
            // Enough for a list of numbers. Read other datasets with a library for JSON.
            String[] words = request.substring(1).split("[^\\w.+-]+");
            int runs = Integer.parseInt(words[2]);
            var random = new SplittableRandom(Long.parseLong(words[4]));
            List<Double> dataset = Arrays.stream(words).skip(6).map(Double::valueOf).toList();
            ByteBuffer outputs = ByteBuffer.allocate(8 * runs).order(ByteOrder.LITTLE_ENDIAN);
            while (outputs.hasRemaining()) outputs.putDouble(mechanism.applyAsDouble(dataset, random));
            answers.print("{\"format\": \"float64\", \"shape\": [" + runs + "]}\n"); // vectors: [runs, coordinates]
            answers.write(outputs.array());
            answers.flush();
        }
    }
}
