package libvpx

import (
	"errors"
	"fmt"
	"image"
	"runtime"
	"time"
	"unsafe"
)

// After ErrBroken, the decoder starts over with the next key frame.
var ErrBroken = errors.New("libvpx: the frame cannot be decoded")

type Decoder struct {
	library *Library
	context memory
}

func NewDecoder(l *Library) *Decoder { return &Decoder{library: l} }

// Decode decodes a frame into the 4:2:0 picture that to(size) returns. shown is false for frames that only prepare
// later ones. Errors: ErrBroken.
func (d *Decoder) Decode(frame []byte, to func(size image.Point) *image.YCbCr) (shown bool, err error) {
	if len(frame) == 0 {
		return false, ErrBroken
	}
	if d.context == nil && !d.open() {
		return false, errors.New("libvpx: cannot open the decoder")
	}
	if d.library.decode(d.context.at(0), unsafe.Pointer(&frame[0]), uint32(len(frame)), 0, 0) != codecOK {
		// Later frames must not depend on a broken frame.
		d.Close()
		return false, ErrBroken
	}
	iterator := uintptr(0)
	picture := d.library.nextPicture(d.context.at(0), unsafe.Pointer(&iterator))
	if picture == nil {
		return false, nil
	}
	read := func(offset int) int { return int(*(*uint32)(unsafe.Add(picture, offset))) }
	width, height := read(imageWidth), read(imageHeight)
	out := to(image.Pt(width, height))
	half := func(side int) int { return (side + 1) / 2 }
	for i, plane := range []struct {
		to            []byte
		stride        int
		width, height int
	}{
		{out.Y, out.YStride, width, height},
		{out.Cb, out.CStride, half(width), half(height)},
		{out.Cr, out.CStride, half(width), half(height)},
	} {
		from := *(*unsafe.Pointer)(unsafe.Add(picture, imagePlanes+8*i))
		stride := int(*(*int32)(unsafe.Add(picture, imageStrides+4*i)))
		for y := range plane.height {
			copy(plane.to[y*plane.stride:][:plane.width], unsafe.Slice((*byte)(unsafe.Add(from, y*stride)), plane.width))
		}
	}
	return true, nil
}

func (d *Decoder) open() bool {
	d.context = make(memory, sizeOfContext)
	// Use one thread. The size is unknown until the stream's first frame.
	config := [3]uint32{1, 0, 0}
	l := d.library
	if l.initDecoder(d.context.at(0), l.decoderInterface, unsafe.Pointer(&config), 0, decoderABI) != codecOK {
		d.context = nil
		return false
	}
	return true
}

// After Close, the decoder can be used again, starting with a key frame.
func (d *Decoder) Close() {
	if d.context != nil {
		d.library.destroy(d.context.at(0))
		d.context = nil
	}
}

type Encoding struct {
	// At is the frame's timestamp in the stream. It must increase.
	At time.Duration
	// Bitrate is in kbit/s. It may change with every frame.
	Bitrate int
	Key     bool
}

// Encoder encodes live video at a constant bitrate, with key frames only on request.
type Encoder struct {
	library *Library
	context memory
	config  memory
	image   memory
	size    image.Point
	bitrate int
	last    int64
	out     []byte
}

func NewEncoder(l *Library) *Encoder { return &Encoder{library: l} }

const ticks = 90000

// Encode encodes a picture laid out by [Resize]. If the size changes, it makes a key frame. The
// frame is valid until the next call. It is empty if the encoder dropped the picture.
func (e *Encoder) Encode(picture *image.YCbCr, how Encoding) ([]byte, error) {
	if size := picture.Rect.Size(); e.context == nil || size != e.size {
		e.Close()
		if err := e.open(size, how.Bitrate); err != nil {
			return nil, err
		}
	}
	l := e.library
	if how.Bitrate != e.bitrate {
		e.config.set(configBitrate, uint32(how.Bitrate))
		if code := l.setConfig(e.context.at(0), e.config.at(0)); code != codecOK {
			return nil, fmt.Errorf("libvpx: cannot set the bitrate %d: libvpx error code %d", how.Bitrate, code)
		}
		e.bitrate = how.Bitrate
	}
	defer runtime.KeepAlive(picture)
	if l.wrap(e.image.at(0), formatI420, uint32(e.size.X), uint32(e.size.Y), 1, unsafe.Pointer(&picture.Y[0])) == nil {
		return nil, errors.New("libvpx: the encoder rejected the picture")
	}
	at := max(int64(how.At.Seconds()*ticks), e.last+1)
	flags := int64(0)
	if how.Key {
		flags = flagKey
	}
	code := l.encode(e.context.at(0), e.image.at(0), at, uint64(at-e.last), flags, deadlineRealtime)
	if e.last = at; code != codecOK {
		return nil, fmt.Errorf("libvpx: error code %d", code)
	}
	e.out = e.out[:0]
	iterator := uintptr(0)
	for {
		packet := l.nextPacket(e.context.at(0), unsafe.Pointer(&iterator))
		if packet == nil {
			return e.out, nil
		}
		if *(*uint32)(unsafe.Add(packet, packetKind)) == 0 {
			data := *(*unsafe.Pointer)(unsafe.Add(packet, packetData))
			e.out = append(e.out, unsafe.Slice((*byte)(data), *(*uint64)(unsafe.Add(packet, packetSize)))...)
		}
	}
}

func (e *Encoder) open(size image.Point, bitrate int) error {
	l := e.library
	config := make(memory, sizeOfConfig)
	if l.defaultConfig(l.encoderInterface, config.at(0), 0) != codecOK {
		return errors.New("libvpx: the encoder has no configuration")
	}
	for _, value := range []struct {
		offset int
		value  uint32
	}{
		{configThreads, 1}, {configWidth, uint32(size.X)}, {configHeight, uint32(size.Y)},
		{configTimebase, 1}, {configTimebase + 4, ticks}, {configResilient, 1}, {configLag, 0},
		{configDrop, 0}, {configRateControl, constantBitrate}, {configBitrate, uint32(bitrate)},
		{configLeast, 2}, {configMost, 56}, {configUnder, 100}, {configOver, 15},
		{configInitial, 500}, {configOptimal, 600}, {configBuffer, 1000}, {configKeyMode, 0},
	} {
		config.set(value.offset, value.value)
	}
	e.context, e.config, e.image = make(memory, sizeOfContext), config, make(memory, sizeOfImage)
	if code := l.initEncoder(e.context.at(0), l.encoderInterface, config.at(0), 0, encoderABI); code != codecOK {
		e.context = nil
		return fmt.Errorf("libvpx: cannot open the encoder: libvpx error code %d", code)
	}
	e.size, e.bitrate, e.last = size, bitrate, -ticks/25
	for _, setting := range [][2]int32{
		{setSpeed, -speed}, {setNoise, 0}, {setStatic, 1}, {setPartitions, 0}, {setMostKeyFrames, 300},
	} {
		if code := l.control(e.context.at(0), setting[0], setting[1]); code != codecOK {
			return fmt.Errorf("libvpx: cannot set option %d: libvpx error code %d", setting[0], code)
		}
	}
	return nil
}

func (e *Encoder) Close() {
	if e.context != nil {
		e.library.destroy(e.context.at(0))
		e.context = nil
	}
}

// Resize turns the picture into a 4:2:0 picture of the given size with contiguous planes. It reuses memory.
func Resize(picture *image.YCbCr, size image.Point) {
	across, down := (size.X+1)/2, (size.Y+1)/2
	luma, chroma := size.X*size.Y, across*down
	whole := picture.Y[:cap(picture.Y)]
	if len(whole) < luma+2*chroma {
		whole = make([]byte, luma+2*chroma)
	}
	*picture = image.YCbCr{
		Y: whole[:luma:cap(whole)], Cb: whole[luma:][:chroma:chroma], Cr: whole[luma+chroma:][:chroma:chroma],
		YStride: size.X, CStride: across, SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rectangle{Max: size},
	}
}
