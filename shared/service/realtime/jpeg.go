package realtime

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
)

const frameQuality = 82

func decodeFrame(frame []byte) (*engine.Picture, error) {
	if err := checkFrame(frame); err != nil {
		return nil, err
	}
	decoded, err := jpeg.Decode(bytes.NewReader(frame))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The frame cannot be decoded as JPEG.")
	}
	still, err := media.InspectStill(bytes.NewReader(frame), int64(len(frame)), "image/jpeg")
	if err != nil {
		return nil, err
	}
	return &engine.Picture{YCbCr: *upright(planes(decoded), still.Orientation)}, nil
}

func upright(picture *image.YCbCr, orientation int) *image.YCbCr {
	if orientation < 2 || orientation > 8 {
		return picture
	}
	from := picture.Bounds()
	width, height := from.Dx(), from.Dy()
	if orientation >= 5 {
		width, height = height, width
	}
	turned := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio444)
	for y := range height {
		for x := range width {
			column, row := x, y
			if orientation >= 5 {
				column, row = y, x
			}
			switch orientation {
			case 2, 3, 7, 8:
				column = from.Dx() - 1 - column
			}
			switch orientation {
			case 3, 4, 6, 7:
				row = from.Dy() - 1 - row
			}
			at, luma := turned.YOffset(x, y), picture.YOffset(from.Min.X+column, from.Min.Y+row)
			chroma := picture.COffset(from.Min.X+column, from.Min.Y+row)
			turned.Y[at], turned.Cb[at], turned.Cr[at] = picture.Y[luma], picture.Cb[chroma], picture.Cr[chroma]
		}
	}
	return turned
}

// planes converts a decoded JPEG to YCbCr. A few JPEGs are gray or RGB.
func planes(decoded image.Image) *image.YCbCr {
	if picture, ok := decoded.(*image.YCbCr); ok {
		return picture
	}
	bounds := decoded.Bounds()
	if gray, ok := decoded.(*image.Gray); ok {
		picture := image.NewYCbCr(bounds, image.YCbCrSubsampleRatio420)
		for y := range bounds.Dy() {
			copy(picture.Y[y*picture.YStride:][:bounds.Dx()], gray.Pix[y*gray.Stride:])
		}
		for i := range picture.Cb {
			picture.Cb[i], picture.Cr[i] = 128, 128
		}
		return picture
	}
	picture := image.NewYCbCr(bounds, image.YCbCrSubsampleRatio444)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := decoded.At(x, y).RGBA()
			at := picture.YOffset(x, y)
			picture.Y[at], picture.Cb[at], picture.Cr[at] = color.RGBToYCbCr(uint8(r>>8), uint8(g>>8), uint8(b>>8))
		}
	}
	return picture
}

func encodeFrame(picture *engine.Picture) ([]byte, error) {
	if picture.Narrow {
		return nil, errors.New("realtime: the engine changed the color range of a picture")
	}
	var out bytes.Buffer
	out.Grow(picture.Rect.Dx() * picture.Rect.Dy() / 4)
	if err := jpeg.Encode(&out, &picture.YCbCr, &jpeg.Options{Quality: frameQuality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// checkFrame checks a frame's header strictly, because the frame is decoded in this process.
//
// Errors: fault.Invalid.
func checkFrame(frame []byte) error {
	kind, known := sniff.Media(frame)
	if !known || kind.MIME != "image/jpeg" {
		return fault.New(fault.Invalid, "A binary message must be a JPEG frame.")
	}
	header, ok := media.InspectJPEG(frame)
	switch {
	case !ok:
		return fault.New(fault.Invalid, "The frame is malformed.")
	case header.Components == 4: // no camera or browser encodes CMYK, which takes twice as long to decode
		return fault.New(fault.Invalid, "The frame is CMYK. Send a gray or color JPEG.")
	case header.Width*header.Height > maxFramePixels:
		return fault.New(fault.Invalid, "The frame is larger than 1920x1080 pixels.")
	case header.Scans > maxScans:
		return fault.New(fault.Invalid, "The frame has more than %d scans.", maxScans)
	case header.Memory > maxFrameMemory:
		return fault.New(fault.Invalid, "Decoding the frame needs too much memory.")
	}
	return nil
}

// maxScans limits the scans in a JPEG. Encoders write up to 14. A dozen bytes suffice for an empty
// scan that makes a decoder visit every block, so a small file could take minutes.
const maxScans = 16

// scans returns an upper bound on the number of scans (ITU-T T.81, B.1.1.5).
func scans(jpeg []byte) int { return bytes.Count(jpeg, []byte{0xff, 0xda}) }
