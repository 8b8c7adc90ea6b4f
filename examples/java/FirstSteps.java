package shop;

import io.tamis.TamisFilter;

/** What the tutorials' classes come down to. */
public final class FirstSteps {
    public static void main(String[] arguments) {
        TamisFilter seen = TamisFilter.of(1_000_000, 0.01);
        seen.put("ada@example.org");
        System.out.println(seen.mightContain("ada@example.org") + " " + seen.mightContain("eve@example.org"));
    }
}
