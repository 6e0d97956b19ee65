// Package libvpx calls the VP8 decoder and encoder of the system's libvpx, without cgo. A malicious
// frame may compromise the process, so package vp8 calls it in a sandbox.
package libvpx

import (
	"errors"
	"fmt"
	"image"
	"runtime"
	"strings"
	"unsafe"

	"cutroom/shared/platform/dynamic"
)

// names returns the file names to try, newest first. The number is the version of the binary interface. The parts
// used here are the same in all versions so far; check verifies this.
func names() []string {
	if runtime.GOOS == "darwin" {
		return []string{
			"/opt/homebrew/lib/libvpx.dylib", "/usr/local/lib/libvpx.dylib", "/opt/local/lib/libvpx.dylib", "libvpx.dylib",
		}
	}
	return []string{"libvpx.so.12", "libvpx.so.11", "libvpx.so.10", "libvpx.so.9", "libvpx.so.8", "libvpx.so.7"}
}

// Field offsets in libvpx's structures on 64-bit systems, and the structures' sizes with a margin.
const (
	sizeOfContext, sizeOfConfig, sizeOfImage = 256, 2048, 512

	configThreads, configWidth, configHeight     = 4, 12, 16
	configTimebase, configResilient, configLag   = 28, 36, 44
	configDrop, configRateControl, configBitrate = 48, 72, 112
	configLeast, configMost                      = 116, 120
	configUnder, configOver                      = 124, 128
	configBuffer, configInitial, configOptimal   = 132, 136, 140
	configKeyMode, configKeyDistance             = 160, 168

	imagePlanes, imageStrides, imageWidth, imageHeight = 48, 80, 24, 28
	packetKind, packetData, packetSize                 = 0, 8, 16
)

// Constants from vpx_codec.h, vpx_encoder.h, vpx_image.h and vp8cx.h.
const (
	codecOK          = 0
	formatI420       = 0x102
	deadlineRealtime = 1
	flagKey          = 1
	constantBitrate  = 1

	setSpeed, setNoise, setStatic   = 13, 15, 17
	setPartitions, setMostKeyFrames = 18, 26
)

// The interface versions of the oldest supported library, libvpx.so.7. Newer libraries accept callers of older
// versions. That does not prove that the layout is unchanged, so check verifies more.
const decoderABI, encoderABI = 12, 25

// speed trades quality for speed, 0 to 16. Live video is encoded at 4 to 12.
const speed = 8

type Library struct {
	path, version string

	decoderInterface, encoderInterface uintptr

	initDecoder   func(context unsafe.Pointer, codec uintptr, config unsafe.Pointer, flags int64, abi int32) int32
	decode        func(context, data unsafe.Pointer, size uint32, private uintptr, deadline int64) int32
	nextPicture   func(context, iterator unsafe.Pointer) unsafe.Pointer
	defaultConfig func(codec uintptr, config unsafe.Pointer, usage uint32) int32
	initEncoder   func(context unsafe.Pointer, codec uintptr, config unsafe.Pointer, flags int64, abi int32) int32
	setConfig     func(context, config unsafe.Pointer) int32
	encode        func(context, image unsafe.Pointer, at int64, duration uint64, flags int64, deadline uint64) int32
	nextPacket    func(context, iterator unsafe.Pointer) unsafe.Pointer
	wrap          func(image unsafe.Pointer, format int32, width, height, align uint32, data unsafe.Pointer) unsafe.Pointer
	destroy       func(context unsafe.Pointer) int32
	control       func(context unsafe.Pointer, id, value int32) int32
}

// Load loads and verifies the library. The path "" means the system's library.
func Load(path string) (*Library, error) {
	candidates := names()
	if path != "" {
		candidates = []string{path}
	}
	var handle uintptr
	var failures []string
	for _, name := range candidates {
		var err error
		if handle, err = dynamic.Open(name); err == nil {
			path = name
			break
		}
		failures = append(failures, err.Error())
	}
	if handle == 0 {
		return nil, fmt.Errorf("cannot load libvpx: %s", strings.Join(failures, "; "))
	}
	l := &Library{path: path}
	if err := l.bind(handle); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func (l *Library) bind(handle uintptr) error {
	var version func() string
	var decoder, encoder func() uintptr
	functions := []struct {
		to   any
		name string
	}{
		{&version, "vpx_codec_version_str"}, {&decoder, "vpx_codec_vp8_dx"}, {&encoder, "vpx_codec_vp8_cx"},
		{&l.initDecoder, "vpx_codec_dec_init_ver"}, {&l.decode, "vpx_codec_decode"},
		{&l.nextPicture, "vpx_codec_get_frame"}, {&l.defaultConfig, "vpx_codec_enc_config_default"},
		{&l.initEncoder, "vpx_codec_enc_init_ver"}, {&l.setConfig, "vpx_codec_enc_config_set"},
		{&l.encode, "vpx_codec_encode"}, {&l.nextPacket, "vpx_codec_get_cx_data"}, {&l.wrap, "vpx_img_wrap"},
		{&l.destroy, "vpx_codec_destroy"},
	}
	for _, f := range functions {
		address, err := dynamic.Symbol(handle, f.name)
		if err != nil {
			return fmt.Errorf("the library has no %s; it was built without VP8: %w", f.name, err)
		}
		dynamic.Bind(f.to, address)
	}
	address, err := dynamic.Symbol(handle, "vpx_codec_control_")
	if err != nil {
		return err
	}
	l.control = variadic(address)
	l.version, l.decoderInterface, l.encoderInterface = version(), decoder(), encoder()
	return l.check()
}

// variadic returns a function that calls vpx_codec_control_, whose value is a variadic argument. On Apple's ARM
// processors, variadic arguments are passed on the stack, like the ninth argument of an ordinary call.
func variadic(address uintptr) func(context unsafe.Pointer, id, value int32) int32 {
	if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
		var call func(context unsafe.Pointer, id int32, _, _, _, _, _, _ uintptr, value int64) int32
		dynamic.Bind(&call, address)
		return func(context unsafe.Pointer, id, value int32) int32 {
			return call(context, id, 0, 0, 0, 0, 0, 0, int64(value))
		}
	}
	var call func(context unsafe.Pointer, id, value int32) int32
	dynamic.Bind(&call, address)
	return call
}

// check verifies the structures' default values, and that encoder and decoder are compatible.
func (l *Library) check() error {
	config := make(memory, sizeOfConfig)
	if l.defaultConfig(l.encoderInterface, config.at(0), 0) != codecOK {
		return errors.New("the library has no configuration for its VP8 encoder")
	}
	for _, value := range []struct {
		offset int
		want   uint32
	}{
		{configWidth, 320}, {configHeight, 240}, {configTimebase, 1}, {configTimebase + 4, 30},
		{configBitrate, 256}, {configLeast, 4}, {configMost, 63}, {configUnder, 100}, {configOver, 100},
		{configBuffer, 6000}, {configInitial, 4000}, {configOptimal, 5000}, {configKeyMode, 1},
		{configKeyDistance, 128},
	} {
		if got := config.get(value.offset); got != value.want {
			return fmt.Errorf("the library's configuration has an unknown layout: %d at %d instead of %d",
				got, value.offset, value.want)
		}
	}
	return l.tryPicture()
}

func (l *Library) tryPicture() error {
	const side = 64
	var sent, got image.YCbCr
	Resize(&sent, image.Pt(side, side))
	for i := range sent.Y {
		sent.Y[i] = byte(32 + i%side*2 + i/side)
	}
	for i := range sent.Cb {
		sent.Cb[i], sent.Cr[i] = 100, 150
	}
	encoder, decoder := NewEncoder(l), NewDecoder(l)
	defer encoder.Close()
	defer decoder.Close()
	frame, err := encoder.Encode(&sent, Encoding{Bitrate: 1000, Key: true})
	if err != nil {
		return err
	}
	shown, err := decoder.Decode(frame, func(size image.Point) *image.YCbCr {
		Resize(&got, size)
		return &got
	})
	if err != nil {
		return err
	}
	wrong := 0
	for i := range got.Y {
		wrong += max(int(got.Y[i])-int(sent.Y[i]), int(sent.Y[i])-int(got.Y[i]))
	}
	if !shown || len(got.Y) != len(sent.Y) || wrong > 8*len(got.Y) {
		return errors.New("a picture differs after encoding and decoding")
	}
	return nil
}

func (l *Library) Path() string    { return l.path }
func (l *Library) Version() string { return l.version }

// memory holds a library structure, aligned to 8 bytes like Go's larger allocations.
type memory []byte

func (m memory) at(offset int) unsafe.Pointer { return unsafe.Pointer(&m[offset]) }
func (m memory) get(offset int) uint32        { return *(*uint32)(m.at(offset)) }
func (m memory) set(offset int, value uint32) { *(*uint32)(m.at(offset)) = value }
