import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PrivacyTest {
    static void dpaudit(String mechanism, String options) throws Exception {
        var program = "java -cp target/classes:target/test-classes Audit " + mechanism;
        var command = new ArrayList<>(List.of("dpaudit", "audit", "--program", program));
        command.addAll(List.of(options.split(" ")));
        Process audit = new ProcessBuilder(command).redirectErrorStream(true).start();
        var said = new String(audit.getInputStream().readAllBytes());
        assertEquals(0, audit.waitFor(), said);
    }

    @Test
    void noisyCountIsPrivate() throws Exception {
        dpaudit("noisyCount", "--x [1] --y [] --epsilon 0.7 --adjacency add-remove --runs 100000 --alpha 1e-5");
    }
}
