package media_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"runtime"
	"slices"
	"testing"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/mediatest"
)

func encoded(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func frameHeader(t testing.TB, data []byte) int {
	t.Helper()
	at := bytes.Index(data, []byte{0xff, 0xc0, 0, 17, 8})
	if at < 0 {
		t.Fatal("no frame header")
	}
	return at
}

func TestInspectJPEGReadsHeader(t *testing.T) {
	gray, colour := image.NewGray(image.Rect(0, 0, 33, 17)), image.NewRGBA(image.Rect(0, 0, 33, 17))
	camera := mediatest.Image{Name: "a.jpg", Width: 64, Height: 48, Orientation: 6}.Make(t)
	content, err := os.ReadFile(camera)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		want media.JPEG
	}{
		"gray": {
			encoded(t, gray), media.JPEG{Width: 33, Height: 17, Components: 1, Scans: 1, Memory: 64*5*3 + 4*33*17},
		},
		"colour": {
			encoded(t, colour), media.JPEG{Width: 33, Height: 17, Components: 3, Scans: 1, Memory: 64*6*3*2 + 4*33*17},
		},
		"from an encoder, rotated": {
			content, media.JPEG{Width: 64, Height: 48, Components: 3, Scans: 1, Memory: 3*64*48 + 4*64*48},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := media.InspectJPEG(test.data); !ok || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, ok, test.want)
			}
		})
	}
}

// Pictures that two decoders may read differently are rejected.
func TestInspectJPEGRejectsAmbiguousFiles(t *testing.T) {
	good := encoded(t, image.NewRGBA(image.Rect(0, 0, 32, 16)))
	at := frameHeader(t, good)
	header := good[at : at+19]
	insert := func(parts ...[]byte) []byte {
		return slices.Concat(good[:at], slices.Concat(parts...), good[at:])
	}
	change := func(offset int, values ...byte) []byte {
		changed := bytes.Clone(good)
		copy(changed[at+offset:], values)
		return changed
	}
	for name, data := range map[string][]byte{
		"nothing":                        nil,
		"only a start marker":            good[:2],
		"no frame header":                slices.Concat(good[:at], good[at+19:]),
		"two frame headers":              insert(header),
		"bytes between segments":         insert([]byte("x")),
		"a restart between segments":     insert([]byte{0xff, 0xd0}),
		"a restart that hides a segment": insert([]byte{0xff, 0xd0, 0, 19}),
		"a stuffed byte":                 insert([]byte{0xff, 0}),
		"arithmetic coding":              change(1, 0xc9),
		"lossless":                       change(1, 0xc3),
		"12 bits":                        change(4, 12),
		"no height":                      change(5, 0, 0),
		"no width":                       change(7, 0, 0),
		"a sampling of 15":               change(11, 0xf1),
		"no sampling":                    change(11, 0x01),
		"a segment that is too long":     slices.Concat(good[:at], []byte{0xff, 0xe5, 0xff, 0xff}, good[at:]),
		"a segment that is too short":    insert([]byte{0xff, 0xe5, 0, 1}),
		"two components": slices.Concat(
			good[:at], []byte{0xff, 0xc0, 0, 14, 8, 0, 16, 0, 32, 2, 1, 0x11, 0, 2, 0x11, 0},
			good[at+19:],
		),
	} {
		if got, ok := media.InspectJPEG(data); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestInspectJPEGLimitsMemory(t *testing.T) {
	for _, size := range []image.Point{{1920, 1088}, {1, 65500}, {65500, 1}, {16, 16}} {
		picture := image.NewRGBA(image.Rectangle{Max: size})
		picture.Set(0, 0, color.White)
		data := encoded(t, picture)
		header, ok := media.InspectJPEG(data)
		if !ok {
			t.Fatalf("%v was rejected", size)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := jpeg.Decode(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		const besides = 256 << 10
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > header.Memory+besides {
			t.Errorf("%v takes %d bytes, more than %d", size, took, header.Memory)
		}
	}
}

// The pictures of a WebP may be larger than its canvas claims.
func TestInspectMeasuresWebPPicturesBeyondCanvas(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		want int
	}{
		"lossy": {mediatest.WebPOverCanvas(t), 64}, "lossless": {mediatest.WebPBomb(), 16384},
	} {
		info, err := media.Inspect(bytes.NewReader(test.data), int64(len(test.data)), "image/webp")
		if err != nil || info.Width != test.want || info.Height != test.want {
			t.Errorf("%s: got %+v, %v", name, info, err)
		}
	}
}

// Go's decoder must read the same header and need no more memory.
func FuzzInspectJPEG(f *testing.F) {
	f.Add(encoded(f, image.NewGray(image.Rect(0, 0, 9, 5))))
	f.Add(encoded(f, image.NewRGBA(image.Rect(0, 0, 16, 16))))
	content, err := os.ReadFile(mediatest.Image{Name: "a.jpg", Width: 32, Height: 24, Orientation: 6}.Make(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add(mediatest.ProgressiveJPEG)
	f.Fuzz(func(t *testing.T, data []byte) {
		header, ok := media.InspectJPEG(data)
		if !ok || header.Width*header.Height > 1<<20 || header.Scans > 20 {
			return
		}
		if header.Width < 1 || header.Height < 1 || header.Memory < int64(header.Width*header.Height) {
			t.Errorf("got %+v", header)
		}
		picture, err := jpeg.Decode(bytes.NewReader(data))
		if err == nil && (picture.Bounds().Dx() != header.Width || picture.Bounds().Dy() != header.Height) {
			t.Errorf("a picture of %v has the header %+v", picture.Bounds(), header)
		}
	})
}
