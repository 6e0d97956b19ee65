package livekit

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMessage means that the bytes are not the expected message, or that a list is too long.
var ErrMessage = errors.New("livekit: the message is malformed or has too many elements")

// Marshal encodes the message to which a pointer points. A field is omitted if it is zero.
func Marshal(message any) []byte { return appendMessage(nil, reflect.ValueOf(message).Elem()) }

// Unmarshal decodes a message into the struct to which a pointer points. It skips unknown fields and fails if a list
// is too long. Fields of type []byte share memory with the content.
//
// Errors: ErrMessage.
func Unmarshal(content []byte, message any) error {
	left := maxFields
	return readMessage(content, reflect.ValueOf(message).Elem(), &left)
}

// field describes a field of a message by its tag, such as `wire:"5"`. For a list, the tag also has the maximum
// length, such as `wire:"5,8"`.
type field struct {
	number protowire.Number
	most   int
}

var known sync.Map // maps a message's reflect.Type to its []field

func fieldsOf(message reflect.Type) []field {
	if fields, ok := known.Load(message); ok {
		return fields.([]field)
	}
	fields := make([]field, message.NumField())
	for i := range fields {
		number, most, _ := strings.Cut(message.Field(i).Tag.Get("wire"), ",")
		n, _ := strconv.Atoi(number) // the tags are valid
		fields[i].number = protowire.Number(n)
		fields[i].most, _ = strconv.Atoi(most)
	}
	known.Store(message, fields)
	return fields
}

// kindOf returns how a value of the type is encoded.
func kindOf(t reflect.Type) protowire.Type {
	switch t.Kind() {
	case reflect.String, reflect.Slice:
		return protowire.BytesType
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct {
			return protowire.BytesType
		}
	}
	return protowire.VarintType
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

func appendMessage(out []byte, message reflect.Value) []byte {
	for i, f := range fieldsOf(message.Type()) {
		value := message.Field(i)
		switch {
		case value.IsZero(), value.Kind() == reflect.Slice && value.Len() == 0:
		case !isList(value.Type()):
			out = appendValue(protowire.AppendTag(out, f.number, kindOf(value.Type())), value)
		case kindOf(value.Type().Elem()) == protowire.VarintType:
			var packed []byte
			for j := range value.Len() {
				packed = appendValue(packed, value.Index(j))
			}
			out = protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), packed)
		default:
			for j := range value.Len() {
				out = appendValue(protowire.AppendTag(out, f.number, protowire.BytesType), value.Index(j))
			}
		}
	}
	return out
}

func appendValue(out []byte, value reflect.Value) []byte {
	switch value.Kind() {
	case reflect.String:
		return protowire.AppendString(out, value.String())
	case reflect.Slice:
		return protowire.AppendBytes(out, value.Bytes())
	case reflect.Pointer:
		if value.Elem().Kind() == reflect.Struct {
			return protowire.AppendBytes(out, appendMessage(nil, value.Elem()))
		}
		return appendValue(out, value.Elem())
	case reflect.Bool:
		return protowire.AppendVarint(out, protowire.EncodeBool(value.Bool()))
	case reflect.Uint32:
		return protowire.AppendVarint(out, value.Uint())
	}
	return protowire.AppendVarint(out, uint64(value.Int()))
}

// encoded is a field's value. A varint is in number, and any other value is in content. left is the number of fields
// that the outermost message may still have.
type encoded struct {
	kind    protowire.Type
	number  uint64
	content []byte
	left    *int
}

// maxFields limits the fields of a message with all messages in it, including unknown fields.
const maxFields = 1000

func readMessage(content []byte, message reflect.Value, left *int) error {
	fields := fieldsOf(message.Type())
	for len(content) > 0 {
		if *left--; *left < 0 {
			return ErrMessage
		}
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			return ErrMessage
		}
		content = content[n:]
		e := encoded{kind: kind, left: left}
		switch kind {
		case protowire.VarintType:
			e.number, n = protowire.ConsumeVarint(content)
		case protowire.BytesType:
			e.content, n = protowire.ConsumeBytes(content)
		case protowire.Fixed32Type, protowire.Fixed64Type:
			n = protowire.ConsumeFieldValue(number, kind, content)
		default: // the protocol has no groups, which could nest
			n = -1
		}
		if n < 0 {
			return ErrMessage
		}
		content = content[n:]
		i := slices.IndexFunc(fields, func(f field) bool { return f.number == number })
		if i < 0 {
			continue
		}
		if err := e.readField(message.Field(i), fields[i].most); err != nil {
			return err
		}
	}
	return nil
}

// readField ignores a value of the wrong kind. Numbers of a list may be packed or single.
func (e encoded) readField(value reflect.Value, most int) error {
	if !isList(value.Type()) {
		return e.read(value)
	}
	if e.kind != protowire.BytesType || kindOf(value.Type().Elem()) == protowire.BytesType {
		return e.add(value, most)
	}
	for packed := e.content; len(packed) > 0; {
		number, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return ErrMessage
		}
		if err := (encoded{kind: protowire.VarintType, number: number}).add(value, most); err != nil {
			return err
		}
		packed = packed[n:]
	}
	return nil
}

func (e encoded) add(list reflect.Value, most int) error {
	of := list.Type().Elem()
	if e.kind != kindOf(of) {
		return nil
	}
	if list.Len() >= most {
		return ErrMessage
	}
	one := reflect.New(of).Elem()
	err := e.read(one)
	list.Set(reflect.Append(list, one))
	return err
}

// read sets a value. If a nested message is repeated, the messages are merged.
func (e encoded) read(value reflect.Value) error {
	if e.kind != kindOf(value.Type()) {
		return nil
	}
	switch value.Kind() {
	case reflect.String:
		if !utf8.Valid(e.content) {
			return ErrMessage
		}
		value.SetString(string(e.content))
	case reflect.Slice:
		value.SetBytes(e.content)
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		if e.kind == protowire.BytesType {
			return readMessage(e.content, value.Elem(), e.left)
		}
		return e.read(value.Elem())
	case reflect.Bool:
		value.SetBool(e.number != 0)
	case reflect.Uint32:
		value.SetUint(e.number)
	default:
		value.SetInt(int64(e.number))
	}
	return nil
}
