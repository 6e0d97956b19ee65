package livekit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"cutroom/shared/testkit/alloctest"
)

const maxSignal = 256 << 10

// nested wraps content in fields with the given numbers, from the outermost to the innermost.
func nested(content []byte, numbers ...protowire.Number) []byte {
	for i := len(numbers) - 1; i >= 0; i-- {
		content = protowire.AppendBytes(protowire.AppendTag(nil, numbers[i], protowire.BytesType), content)
	}
	return content
}

func TestElementsNeedLittleMemory(t *testing.T) {
	of := func(element string) []byte { return bytes.Repeat([]byte(element), maxSignal/len(element)) }
	for name, content := range map[string][]byte{
		"empty fields that are unknown": of("\xfa\x01\x00"),
		"numbers that are unknown":      of("\x78\x00"),
		"pings":                         of("\x70\x00"),
		"offers":                        of("\x0a\x00"),
		"tracks":                        of("\x22\x00"),
		"tracks with a name":            of("\x22\x02\x12\x00"),
		"pings in messages":             of("\x82\x01\x02\x08\x00"),
		"layers":                        nested(of("\x4a\x00"), 4),
		"features":                      nested(of("\x90\x01\x00"), 4),
		"packed features":               nested(nested(of("\x00"), 18), 4),
		"names":                         nested(of("\x12\x02aa"), 4),
		"mids":                          nested(of("\x22\x00"), 1),
		"mids with a name":              nested(of("\x22\x04\x0a\x02aa"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, len(content), func() { _ = Unmarshal(content, &SignalRequest{}) })
		})
	}
	for name, content := range map[string][]byte{"requests": of("\x2a\x00"), "layers": nested(of("\x4a\x00"), 5)} {
		t.Run("join with "+name, func(t *testing.T) {
			alloctest.Check(t, len(content), func() { _ = Unmarshal(content, &JoinRequest{}) })
		})
	}
}

// Repeated messages are merged, so without a common limit each could have as many fields as the outermost one.
func TestFieldsOfAllMessagesAreCounted(t *testing.T) {
	for name, field := range map[string]string{"known": "\x0a\x00", "unknown": "\x78\x00"} {
		offer := nested(bytes.Repeat([]byte(field), 300), 6)
		if err := Unmarshal(bytes.Repeat(offer, 3), &JoinRequest{}); err != nil {
			t.Errorf("%s: 900 fields: %v", name, err)
		}
		if err := Unmarshal(bytes.Repeat(offer, 4), &JoinRequest{}); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: 1,200 fields: %v", name, err)
		}
	}
}

func TestListsAreLimited(t *testing.T) {
	for _, of := range []struct {
		name    string
		message any
		element []byte
		most    int
	}{
		{"layers of a request", &AddTrackRequest{}, nested(nil, 9), 8},
		{"features of a request", &AddTrackRequest{}, []byte{0x90, 1, 1}, 8},
		{"packed features of a request", &AddTrackRequest{}, nested([]byte{1}, 18), 8},
		{"URLs", &ICEServer{}, nested(nil, 1), 16},
		{"layers of a codec", &SimulcastCodecInfo{}, nested(nil, 4), 8},
		{"layers of a track", &TrackInfo{}, nested(nil, 10), 8},
		{"codecs of a track", &TrackInfo{}, nested(nil, 13), 16},
		{"features of a track", &TrackInfo{}, []byte{0xa8, 1, 1}, 8},
		{"tracks", &ParticipantInfo{}, nested(nil, 4), 64},
		{"other participants", &JoinResponse{}, nested(nil, 3), 64},
		{"relays", &JoinResponse{}, nested(nil, 5), 16},
		{"codecs", &JoinResponse{}, nested(nil, 14), 16},
		{"relays to resume with", &ReconnectResponse{}, nested(nil, 1), 16},
		{"participants", &ParticipantUpdate{}, nested(nil, 1), 64},
		{"mids", &SessionDescription{}, nested(nil, 4), 64},
		{"requests", &JoinRequest{}, nested(nil, 5), 16},
	} {
		fresh := func() any { return reflect.New(reflect.TypeOf(of.message).Elem()).Interface() }
		if err := Unmarshal(bytes.Repeat(of.element, of.most), fresh()); err != nil {
			t.Errorf("%s: %d are refused: %v", of.name, of.most, err)
		}
		if err := Unmarshal(bytes.Repeat(of.element, of.most+1), fresh()); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %d are read", of.name, of.most+1)
		}
	}
}

func TestMalformedMessageIsRejected(t *testing.T) {
	for name, content := range map[string]string{
		"a tag without an end": "\xff", "a field 0": "\x02\x00", "a number without an end": "\x70\xff",
		"bytes that are missing": "\x0a\x05v", "a group": "\x0b\x0c", "a broken message in it": "\x0a\x01\xff",
		"invalid UTF-8": "\x0a\x03\x12\x01\xff", "fixed bytes that are missing": "\x7d\x00",
		"packed numbers without an end": "\x22\x04\x92\x01\x01\xff",
	} {
		if err := Unmarshal([]byte(content), &SignalRequest{}); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A decoded message can be encoded again, and decoding the result gives the same message.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("\x0a\x0a\x0a\x05offer\x18\x01"), true)
	f.Add([]byte("\x22\x0a\x0a\x01c\x4a\x02\x08\x02\x90\x01\x01"), true)
	f.Add(nested([]byte("\x2a\x00\x38\x01\x4a\x04PA_1"), 2), false)
	f.Fuzz(func(t *testing.T, content []byte, isRequest bool) {
		fresh := func() any { return &JoinRequest{} }
		if isRequest {
			fresh = func() any { return &SignalRequest{} }
		}
		first, second := fresh(), fresh()
		if Unmarshal(content, first) != nil {
			return
		}
		encoded := Marshal(first)
		if err := Unmarshal(encoded, second); err != nil || !bytes.Equal(Marshal(second), encoded) {
			t.Errorf("%q becomes %q, and that %q, %v", content, encoded, Marshal(second), err)
		}
	})
}

func TestExpandedJoinIsLimited(t *testing.T) {
	for size, accepted := range map[int]bool{MaxJoin: true, MaxJoin + 1: false, 100 * MaxJoin: false} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(make([]byte, size))
		w.Close()
		if content, err := gunzip(b.Bytes(), MaxJoin); (err == nil) != accepted || accepted && len(content) != size {
			t.Errorf("%d bytes: %d, %v", size, len(content), err)
		}
	}
	if _, err := gunzip([]byte("\x1f\x8b\x08 broken"), MaxJoin); err == nil {
		t.Error("a broken message is read")
	}
}
