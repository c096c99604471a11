// Package wire is FIBP without sockets: frames, bodies, opcodes, error codes and connection states.
//
// Bodies, opcodes and codes are generated from the specification; frames, the primitive types and
// the messages of the hot path are written by hand. See spec/fibp.md.
package wire

//go:generate go run ../gen ../..

// Version is the protocol version this package speaks.
const Version = 1

// ALPN is the protocol's name in TLS.
const ALPN = "fila/1"

// Body is the body of one operation.
type Body interface {
	Opcode() uint8
	encode(*Encoder)
	decode(*Decoder)
}

type operation struct {
	name                   string
	fromClient, fromServer bool
	reply                  uint8
	body                   func() Body
}

// Name is an operation's name, for messages to people.
func Name(opcode uint8) string {
	if o, ok := operations[opcode]; ok {
		return o.name
	}
	return "opcode 0x" + hex(opcode)
}

// ReplyTo is the opcode of the answer to a request, 0 if it has none.
func ReplyTo(opcode uint8) uint8 { return operations[opcode].reply }

// NewBody is an empty body of the operation, nil if the opcode is unknown.
func NewBody(opcode uint8) Body {
	if o, ok := operations[opcode]; ok {
		return o.body()
	}
	return nil
}

// Opcodes lists every known operation by name.
func Opcodes() map[string]uint8 {
	found := make(map[string]uint8, len(operations))
	for opcode, o := range operations {
		found[o.name] = opcode
	}
	return found
}

// Cause is an entry of the error catalogue.
type Cause struct {
	Name, Meaning string
	Retryable     bool
}

// CauseOf looks a code up; unknown codes are InternalError.
func CauseOf(code uint8) Cause {
	if c, ok := catalogue[code]; ok {
		return c
	}
	return catalogue[CodeInternalError]
}

func hex(b uint8) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[b>>4], digits[b&15]})
}
