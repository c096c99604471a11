package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Limits of frames, and of bodies that arrive in pieces.
const (
	FrameBytesMax      = 16 << 20
	AssemblyStreamsMax = 16
	AssemblyBytesMax   = 512 << 20

	headerBytes  = 10
	countedBytes = 6 // opcode, flags and request id are part of the length
	continuation = 0x01
	readBytes    = 64 << 10
	trustedBytes = 1 << 20 // reserved at once on a peer's word
)

// AppendFrame appends a body as one frame, or as a run of continued ones if it is larger than
// frameMax allows.
func AppendFrame(b []byte, opcode uint8, requestID uint32, body []byte, frameMax int) []byte {
	piece := frameMax - countedBytes
	for len(body) > piece {
		b = appendHeader(b, opcode, continuation, requestID, piece)
		b = append(b, body[:piece]...)
		body = body[piece:]
	}
	b = appendHeader(b, opcode, 0, requestID, len(body))
	return append(b, body...)
}

// BeginFrame appends a header whose length EndFrame fills in; the body is appended between the two.
func BeginFrame(b []byte, opcode uint8, requestID uint32) []byte {
	return appendHeader(b, opcode, 0, requestID, 0)
}

// EndFrame completes the frame that began at start, cutting it into pieces if it is too long.
func EndFrame(b []byte, start, frameMax int) []byte {
	length := len(b) - start - 4
	if length <= frameMax {
		binary.BigEndian.PutUint32(b[start:], uint32(length))
		return b
	}
	opcode, requestID := b[start+4], binary.BigEndian.Uint32(b[start+6:])
	body := append([]byte(nil), b[start+headerBytes:]...)
	return AppendFrame(b[:start], opcode, requestID, body, frameMax)
}

func appendHeader(b []byte, opcode, flags uint8, requestID uint32, bodyBytes int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(countedBytes+bodyBytes))
	b = append(b, opcode, flags)
	return binary.BigEndian.AppendUint32(b, requestID)
}

// Limits bound what a FrameReader accepts.
type Limits struct {
	FrameBytes, AssemblyStreams, AssemblyBytes int
}

// DefaultLimits are a client's: a Delivery is a little longer than the Enqueue it came from, so a
// client puts together more than the broker's own bound.
var DefaultLimits = Limits{FrameBytesMax, AssemblyStreamsMax, AssemblyBytesMax}

// FrameError is a frame that cannot be accepted. After a fatal one the stream cannot be trusted.
type FrameError struct {
	RequestID uint32
	Fatal     bool
	Reason    string
}

func (e *FrameError) Error() string { return e.Reason }

// Message is an operation with its whole body.
type Message struct {
	Opcode    uint8
	RequestID uint32
	Body      []byte
}

// FrameReader takes messages off a stream and joins the pieces of continued bodies.
type FrameReader struct {
	Limits  Limits
	r       *bufio.Reader
	scratch []byte
	streams map[uint64][]byte
	refused map[uint64]struct{}
	held    int // bytes of half-assembled bodies
}

// NewFrameReader reads from r with the given limits.
func NewFrameReader(r io.Reader, limits Limits) *FrameReader {
	return &FrameReader{
		Limits:  limits,
		r:       bufio.NewReaderSize(r, readBytes),
		streams: map[uint64][]byte{},
		refused: map[uint64]struct{}{},
	}
}

// First returns the first byte of the stream without taking it.
func (f *FrameReader) First() (byte, error) {
	b, err := f.r.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// Next returns the next whole message. A *FrameError that is not fatal costs one message and the
// next call goes on. The body of a Delivery is the caller's; any other is valid until the next call.
func (f *FrameReader) Next() (Message, error) {
	for {
		m, flags, err := f.frame()
		if err != nil {
			return Message{}, err
		}
		if flags == 0 && len(f.streams) == 0 && len(f.refused) == 0 {
			return m, nil
		}
		whole, err := f.assemble(m, flags)
		if err != nil {
			return Message{}, err
		}
		if whole != nil {
			m.Body = whole
			return m, nil
		}
	}
}

func (f *FrameReader) frame() (Message, uint8, error) {
	b, err := f.r.Peek(4)
	if err != nil {
		return Message{}, 0, ended(err, len(b))
	}
	length := binary.BigEndian.Uint32(b)
	if length < countedBytes {
		return Message{}, 0, &FrameError{0, true, fmt.Sprintf(
			"a frame of %d bytes is shorter than its header of %d", length, countedBytes)}
	}
	b, err = f.r.Peek(headerBytes)
	if err != nil {
		return Message{}, 0, ended(err, len(b))
	}
	m := Message{Opcode: b[4], RequestID: binary.BigEndian.Uint32(b[6:])}
	flags := b[5]
	if uint64(length) > uint64(f.Limits.FrameBytes) {
		return Message{}, 0, &FrameError{m.RequestID, true, fmt.Sprintf(
			"a frame of %d bytes exceeds the limit of %d", length, f.Limits.FrameBytes)}
	}
	if _, err := f.r.Discard(headerBytes); err != nil {
		return Message{}, 0, err
	}
	m.Body, err = f.body(int(length)-countedBytes, m.Opcode == OpDelivery)
	return m, flags, err
}

// body reads n bytes: into memory of their own when they are kept.
func (f *FrameReader) body(n int, kept bool) ([]byte, error) {
	if n == 0 {
		return []byte{}, nil
	}
	var b []byte
	switch {
	case kept:
		b = make([]byte, 0, min(n, trustedBytes))
	case cap(f.scratch) >= n || n > trustedBytes:
		b = f.scratch[:0]
	default:
		b = make([]byte, 0, n)
	}
	for len(b) < n {
		// A long frame gets its memory as its bytes arrive, not on the strength of its header.
		step := min(n-len(b), max(cap(b)-len(b), trustedBytes))
		at := len(b)
		if cap(b)-at < step {
			b = append(b, make([]byte, step)...)
		} else {
			b = b[:at+step]
		}
		if _, err := io.ReadFull(f.r, b[at:]); err != nil {
			return nil, ended(err, 1)
		}
	}
	if !kept && cap(b) <= trustedBytes {
		f.scratch = b
	}
	return b, nil
}

func (f *FrameReader) assemble(m Message, flags uint8) ([]byte, error) {
	id := uint64(m.Opcode)<<32 | uint64(m.RequestID)
	more := flags&continuation != 0
	if _, ok := f.refused[id]; ok {
		if !more {
			delete(f.refused, id)
		}
		return nil, nil
	}
	if flags&^continuation != 0 {
		return nil, f.refuse(id, more, fmt.Sprintf("flags 0x%02X use bits that are reserved", flags))
	}
	pieces, begun := f.streams[id]
	if !begun && !more {
		return m.Body, nil
	}
	if !begun && len(f.streams) >= f.Limits.AssemblyStreams {
		return nil, f.refuse(id, more, fmt.Sprintf(
			"more than %d messages are being continued at once", f.Limits.AssemblyStreams))
	}
	if f.held+len(m.Body) > f.Limits.AssemblyBytes {
		return nil, f.refuse(id, more, fmt.Sprintf(
			"continued messages exceed %d bytes", f.Limits.AssemblyBytes))
	}
	f.held += len(m.Body)
	pieces = append(pieces, m.Body...)
	if more {
		f.streams[id] = pieces
		return nil, nil
	}
	delete(f.streams, id)
	f.held -= len(pieces)
	if pieces == nil {
		pieces = []byte{}
	}
	return pieces, nil
}

// refuse drops a message and the pieces of it still to come.
func (f *FrameReader) refuse(id uint64, more bool, reason string) error {
	f.held -= len(f.streams[id])
	delete(f.streams, id)
	fatal := false
	if more {
		f.refused[id] = struct{}{}
		fatal = len(f.refused) > f.Limits.AssemblyStreams
	}
	return &FrameError{uint32(id), fatal, reason}
}

// ended tells an end between two frames from one in the middle.
func ended(err error, had int) error {
	if err == io.EOF && had > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
