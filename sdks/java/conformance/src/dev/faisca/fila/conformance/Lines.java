package dev.faisca.fila.conformance;

import java.text.MessageFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ResourceBundle;

/** A logger that keeps what it is told. */
final class Lines implements System.Logger {
    private final List<Map<String, Object>> lines = new ArrayList<>();

    synchronized List<Map<String, Object>> told() {
        return List.copyOf(lines);
    }

    @Override
    public String getName() {
        return "conformance";
    }

    @Override
    public boolean isLoggable(Level level) {
        return true;
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String text, Throwable thrown) {
        add(level, thrown == null ? text : text + " " + thrown);
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
        add(level, parameters == null ? format : MessageFormat.format(format, parameters));
    }

    private synchronized void add(Level level, String text) {
        String name = level == Level.WARNING ? "warn" : level.name().toLowerCase(Locale.ROOT);
        lines.add(Map.of("level", name, "text", text));
    }
}
