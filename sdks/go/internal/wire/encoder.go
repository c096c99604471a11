package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Pair is one entry of a map, in wire order.
type Pair struct{ Key, Value string }

// Encode appends the body's bytes to b. It fails on values the wire cannot carry: a string of more
// than 65,535 bytes or that is not UTF-8, a list that is too long.
func Encode(b []byte, body Body) ([]byte, error) {
	e := Encoder{Buf: b}
	body.encode(&e)
	return e.Buf, e.Err
}

// Encoder appends fields to Buf and remembers the first value that cannot be sent.
type Encoder struct {
	Buf []byte
	Err error
}

// U8 appends an unsigned integer of one byte.
func (e *Encoder) U8(v uint8) { e.Buf = append(e.Buf, v) }

// U16 appends an unsigned integer of two bytes.
func (e *Encoder) U16(v uint16) { e.Buf = binary.BigEndian.AppendUint16(e.Buf, v) }

// U32 appends an unsigned integer of four bytes.
func (e *Encoder) U32(v uint32) { e.Buf = binary.BigEndian.AppendUint32(e.Buf, v) }

// U64 appends an unsigned integer of eight bytes.
func (e *Encoder) U64(v uint64) { e.Buf = binary.BigEndian.AppendUint64(e.Buf, v) }

// I64 appends a signed integer.
func (e *Encoder) I64(v int64) { e.U64(uint64(v)) }

// F64 appends a double.
func (e *Encoder) F64(v float64) { e.U64(math.Float64bits(v)) }

// Bool appends one byte, 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.U8(1)
	} else {
		e.U8(0)
	}
}

// String appends a length of two bytes and the text.
func (e *Encoder) String(field, v string) {
	if err := CheckString(field, v); err != nil {
		e.fail(err)
		return
	}
	e.text(v)
}

// Bytes appends a length of four bytes and the content.
func (e *Encoder) Bytes(field string, v []byte) {
	if uint64(len(v)) > math.MaxUint32 {
		e.fail(fmt.Errorf("%s has %d bytes; at most %d can be sent", field, len(v), uint32(math.MaxUint32)))
		return
	}
	e.U32(uint32(len(v)))
	e.Buf = append(e.Buf, v...)
}

// Map appends the pairs in their order.
func (e *Encoder) Map(field string, pairs []Pair) {
	e.countU16(field, len(pairs))
	for _, pair := range pairs {
		e.String(field, pair.Key)
		e.String(field, pair.Value)
	}
}

// Strings appends a list.
func (e *Encoder) Strings(field string, list []string) {
	e.countU16(field, len(list))
	for _, v := range list {
		e.String(field, v)
	}
}

// Nullable appends a presence byte, and the text if there is one.
func (e *Encoder) Nullable(field string, v *string) {
	e.Bool(v != nil)
	if v != nil {
		e.String(field, *v)
	}
}

func (e *Encoder) countU16(field string, n int) {
	if n > math.MaxUint16 {
		e.fail(fmt.Errorf("%s has %d entries; at most %d can be sent", field, n, math.MaxUint16))
		return
	}
	e.U16(uint16(n))
}

func (e *Encoder) countU32(field string, n int) {
	if uint64(n) > math.MaxUint32 {
		e.fail(fmt.Errorf("%s has %d entries; at most %d can be sent", field, n, uint32(math.MaxUint32)))
		return
	}
	e.U32(uint32(n))
}

// text appends a string that was checked before.
func (e *Encoder) text(v string) {
	e.U16(uint16(len(v)))
	e.Buf = append(e.Buf, v...)
}

func (e *Encoder) fail(err error) {
	if e.Err == nil {
		e.Err = err
	}
}

// CheckString says why a text cannot be sent, nil if it can.
func CheckString(field, v string) error {
	if len(v) > math.MaxUint16 {
		return fmt.Errorf("%s has %d bytes; at most %d can be sent", field, len(v), math.MaxUint16)
	}
	if !utf8.ValidString(v) {
		return fmt.Errorf("%s is not valid UTF-8", field)
	}
	return nil
}
