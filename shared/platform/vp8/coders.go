package vp8

import (
	"errors"
	"fmt"
	"image"
	"runtime"
	"unsafe"
)

// decoder decodes one stream. The zero value needs its library.
type decoder struct {
	library *libvpx
	context memory
	// begun is true once a key frame was decoded.
	begun bool
}

// decode decodes a frame into the picture that to returns for its size. It reports
// whether the frame shows a picture: some only prepare later ones.
//
// Errors: ErrBroken, ErrTooLarge, ErrKeyFrame.
func (d *decoder) decode(frame []byte, to func(width, height int) *image.YCbCr) (shown bool, err error) {
	header, ok := Inspect(frame)
	switch {
	case !ok:
		d.begun = false
		return false, ErrBroken
	case header.Key && header.Width*header.Height > MaxPixels:
		d.begun = false
		return false, ErrTooLarge
	case !header.Key && !d.begun:
		return false, ErrKeyFrame
	}
	if d.context == nil && !d.open() {
		return false, errors.New("vp8: the decoder cannot be opened")
	}
	if d.library.decode(d.context.at(0), unsafe.Pointer(&frame[0]), uint32(len(frame)), 0, 0) != codecOK {
		// What the decoder keeps of a broken frame is nothing to build on.
		d.close()
		return false, ErrBroken
	}
	d.begun = true
	iterator := uintptr(0)
	picture := d.library.nextPicture(d.context.at(0), unsafe.Pointer(&iterator))
	if picture == nil {
		return false, nil
	}
	read := func(offset int) int { return int(*(*uint32)(unsafe.Add(picture, offset))) }
	width, height := read(imageWidth), read(imageHeight)
	if width <= 0 || height <= 0 || width*height > MaxPixels {
		d.close()
		return false, ErrBroken
	}
	out := to(width, height)
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

func (d *decoder) open() bool {
	d.context = make(memory, sizeOfContext)
	// One thread, and the size of the stream's first frame.
	config := [3]uint32{1, 0, 0}
	l := d.library
	if l.initDecoder(d.context.at(0), l.decoderInterface, unsafe.Pointer(&config), 0, decoderABI) != codecOK {
		d.context = nil
		return false
	}
	return true
}

// close frees what the decoder holds. It can be used again, from a key frame.
func (d *decoder) close() {
	if d.begun = false; d.context != nil {
		d.library.destroy(d.context.at(0))
		d.context = nil
	}
}

// encoder encodes one stream. The zero value needs its library.
type encoder struct {
	library *libvpx
	context memory
	config  memory
	image   memory
	size    image.Point
	bitrate int
	last    int64
	out     []byte
}

// ticks is the encoder's clock, in ticks a second.
const ticks = 90000

// encode encodes a picture whose planes follow one another, as resize lays them out.
// The frame is valid until the next call.
func (e *encoder) encode(picture *image.YCbCr, how Encoding) ([]byte, error) {
	if size := picture.Rect.Size(); e.context == nil || size != e.size {
		e.close()
		if err := e.open(size, how.Bitrate); err != nil {
			return nil, err
		}
	}
	l := e.library
	if how.Bitrate != e.bitrate {
		e.config.set(configBitrate, uint32(how.Bitrate))
		if code := l.setConfig(e.context.at(0), e.config.at(0)); code != codecOK {
			return nil, fmt.Errorf("vp8: the bitrate %d: error %d of libvpx", how.Bitrate, code)
		}
		e.bitrate = how.Bitrate
	}
	defer runtime.KeepAlive(picture)
	if l.wrap(e.image.at(0), formatI420, uint32(e.size.X), uint32(e.size.Y), 1, unsafe.Pointer(&picture.Y[0])) == nil {
		return nil, errors.New("vp8: libvpx refuses the picture")
	}
	at := max(int64(how.At.Seconds()*ticks), e.last+1)
	flags := int64(0)
	if how.Key {
		flags = flagKey
	}
	code := l.encode(e.context.at(0), e.image.at(0), at, uint64(at-e.last), flags, deadlineRealtime)
	if e.last = at; code != codecOK {
		return nil, fmt.Errorf("vp8: error %d of libvpx", code)
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

// open opens the encoder as live video wants it: every picture at once, at a
// constant bitrate, key frames only when they are asked for.
func (e *encoder) open(size image.Point, bitrate int) error {
	l := e.library
	config := make(memory, sizeOfConfig)
	if l.defaultConfig(l.encoderInterface, config.at(0), 0) != codecOK {
		return errors.New("vp8: libvpx has no configuration")
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
	if code := l.initEncoder(e.context.at(0), l.encoderInterface, config.at(0), 0, l.encoderABI); code != codecOK {
		e.context = nil
		return fmt.Errorf("vp8: the encoder cannot be opened: error %d of libvpx", code)
	}
	e.size, e.bitrate, e.last = size, bitrate, -ticks/25
	for _, setting := range [][2]int32{
		{setSpeed, -speed}, {setNoise, 0}, {setStatic, 1}, {setPartitions, 0}, {setMostKeyFrames, 300},
	} {
		if code := l.control(e.context.at(0), setting[0], setting[1]); code != codecOK {
			return fmt.Errorf("vp8: setting %d: error %d of libvpx", setting[0], code)
		}
	}
	return nil
}

func (e *encoder) close() {
	if e.context != nil {
		e.library.destroy(e.context.at(0))
		e.context = nil
	}
}
