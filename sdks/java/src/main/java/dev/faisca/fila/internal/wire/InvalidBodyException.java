package dev.faisca.fila.internal.wire;

/** A body that does not parse; the field at fault is part of it. */
public final class InvalidBodyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String field;
    private final String why;

    public InvalidBodyException(String field, String why) {
        super(field + ": " + why);
        this.field = field;
        this.why = why;
    }

    public String field() {
        return field;
    }

    /** The same fault, seen from the record around the field. */
    InvalidBodyException inside(String outer) {
        InvalidBodyException seen = new InvalidBodyException(outer + "." + field, why);
        seen.setStackTrace(getStackTrace());
        return seen;
    }
}
