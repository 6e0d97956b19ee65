package livekit

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

type Message interface {
	// fields passes each field of the message to w, with its number.
	fields(w *wire)
}

type pointer[T any] interface {
	*T
	Message
}

// ErrMessage means that the bytes are not the expected message, or that a list is too long.
var ErrMessage = errors.New("livekit: the message is malformed or has too many elements")

func Marshal(m Message) []byte {
	w := &wire{}
	m.fields(w)
	return w.out
}

// Unmarshal decodes a message. It skips unknown fields and fails if a list is too long.
//
// Errors: ErrMessage.
func Unmarshal(content []byte, m Message) error {
	w := &wire{}
	w.read(content, m)
	return w.err
}

// wire is a visitor for a message's fields. It either writes all of them or reads the one with a given number.
type wire struct {
	// out receives the encoded message if number is 0.
	out []byte
	// number and kind describe the field to read. A varint's value is in value. Any other field's value is in
	// content.
	number  protowire.Number
	kind    protowire.Type
	value   uint64
	content []byte
	err     error
}

func (w *wire) read(content []byte, m Message) {
	outer := *w
	for len(content) > 0 && outer.err == nil {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			outer.err = ErrMessage
			break
		}
		content = content[n:]
		*w = wire{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			w.value, n = protowire.ConsumeVarint(content)
		case protowire.BytesType:
			w.content, n = protowire.ConsumeBytes(content)
		case protowire.Fixed32Type, protowire.Fixed64Type:
			n = protowire.ConsumeFieldValue(number, kind, content)
		default: // the protocol has no groups, which could nest
			n = -1
		}
		if n < 0 {
			outer.err = ErrMessage
			break
		}
		content = content[n:]
		m.fields(w)
		outer.err = w.err
	}
	*w = outer
}

func (w *wire) writes() bool { return w.number == 0 }

func (w *wire) reads(number protowire.Number, kind protowire.Type) bool {
	return w.number == number && w.kind == kind
}

func (w *wire) fits(has, most int) bool {
	if has >= most {
		w.err = ErrMessage
	}
	return has < most
}

func (w *wire) write(number protowire.Number, content []byte) {
	w.out = protowire.AppendTag(w.out, number, protowire.BytesType)
	w.out = protowire.AppendBytes(w.out, content)
}

func (w *wire) text() string {
	if !utf8.Valid(w.content) {
		w.err = ErrMessage
		return ""
	}
	return string(w.content)
}

type integer interface{ ~int32 | ~uint32 | ~int64 }

func visitNumber[T integer](w *wire, number protowire.Number, field *T) {
	switch {
	case w.writes() && *field != 0:
		w.out = protowire.AppendTag(w.out, number, protowire.VarintType)
		w.out = protowire.AppendVarint(w.out, uint64(*field))
	case w.reads(number, protowire.VarintType):
		*field = T(w.value)
	}
}

// visitChoice visits a number in a oneof. Unlike other numbers, it is written even if it is 0.
func visitChoice(w *wire, number protowire.Number, field **int64) {
	switch {
	case w.writes() && *field != nil:
		w.out = protowire.AppendTag(w.out, number, protowire.VarintType)
		w.out = protowire.AppendVarint(w.out, uint64(**field))
	case w.reads(number, protowire.VarintType):
		read := int64(w.value)
		*field = &read
	}
}

func visitNumbers[T integer](w *wire, number protowire.Number, most int, field *[]T) {
	switch {
	case w.writes() && len(*field) > 0:
		var packed []byte
		for _, each := range *field {
			packed = protowire.AppendVarint(packed, uint64(each))
		}
		w.write(number, packed)
	case w.reads(number, protowire.VarintType) && w.fits(len(*field), most):
		*field = append(*field, T(w.value))
	case w.reads(number, protowire.BytesType):
		for packed := w.content; len(packed) > 0; {
			each, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				w.err = ErrMessage
				return
			}
			if !w.fits(len(*field), most) {
				return
			}
			*field, packed = append(*field, T(each)), packed[n:]
		}
	}
}

func visitFlag(w *wire, number protowire.Number, field *bool) {
	value := int32(0)
	if *field {
		value = 1
	}
	visitNumber(w, number, &value)
	if flag := value != 0; flag != *field { // avoid needless writes, because several goroutines may encode a message
		*field = flag
	}
}

func visitText(w *wire, number protowire.Number, field *string) {
	switch {
	case w.writes() && *field != "":
		w.write(number, []byte(*field))
	case w.reads(number, protowire.BytesType):
		*field = w.text()
	}
}

// visitBytes visits a bytes field. The bytes share memory with Unmarshal's content.
func visitBytes(w *wire, number protowire.Number, field *[]byte) {
	switch {
	case w.writes() && len(*field) > 0:
		w.write(number, *field)
	case w.reads(number, protowire.BytesType):
		*field = w.content
	}
}

func visitTexts(w *wire, number protowire.Number, most int, field *[]string) {
	switch {
	case w.writes():
		for _, each := range *field {
			w.write(number, []byte(each))
		}
	case w.reads(number, protowire.BytesType) && w.fits(len(*field), most):
		*field = append(*field, w.text())
	}
}

// visitMessage visits a nested message. If the field is repeated, the messages are merged.
func visitMessage[T any, M pointer[T]](w *wire, number protowire.Number, field **T) {
	switch {
	case w.writes() && *field != nil:
		w.write(number, Marshal(M(*field)))
	case w.reads(number, protowire.BytesType):
		if *field == nil {
			*field = new(T)
		}
		w.read(w.content, M(*field))
	}
}

func visitMessages[T any, M pointer[T]](w *wire, number protowire.Number, most int, field *[]*T) {
	switch {
	case w.writes():
		for _, each := range *field {
			w.write(number, Marshal(M(each)))
		}
	case w.reads(number, protowire.BytesType) && w.fits(len(*field), most):
		read := new(T)
		w.read(w.content, M(read))
		*field = append(*field, read)
	}
}
