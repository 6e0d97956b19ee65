package ffmpeg

import (
	"cmp"
	"fmt"

	"cutroom/shared/domain/media"
)

// This file alone determines how tracks are read and corrected. The probe chooses them as specified
// in docs/contract/media.md#tracks.

// Corrections need a probe. FFmpeg itself rotates phone videos, whose frame size does not change.
func (s Source) corrected() bool {
	kind, _ := media.Find(s.MIME)
	return kind.Video && !kind.Image && s.Info.Width > 0 && !s.Info.Turned
}

// trackOptions selects the decoder. Size changes are left to the filters. Otherwise FFmpeg would
// restart the graph, which loses filter state and crashes some filters.
func (s Source) trackOptions() []string {
	var options []string
	if s.corrected() {
		options = append(options, "-reinit_filter:v", "0")
	}
	if s.Info.Decoder != "" {
		options = append(options, fmt.Sprintf("-c:V:%d", s.Info.PictureTrack), s.Info.Decoder)
	}
	return options
}

// PictureTrack and SoundTrack name tracks for "-map" and filter links, without the input's number.
func (s Source) PictureTrack() string { return fmt.Sprintf("V:%d", s.Info.PictureTrack) }

func (s Source) SoundTrack() string { return fmt.Sprintf("a:%d", s.Info.SoundTrack) }

// Picture starts a filter chain with the input's chosen video track, corrected.
func (s Source) Picture(number int) string {
	return fmt.Sprintf("[%d:%s]%s", number, s.PictureTrack(), s.corrections())
}

// corrections returns filters that make frames progressive and scale them to the first frame's
// size.
func (s Source) corrections() string {
	switch {
	case !s.corrected():
		return "null"
	case s.Info.Interlaced:
		return boxed(s.Info) + ",bwdif=mode=send_frame:deint=interlaced"
	}
	return boxed(s.Info)
}

// boxed fits later frames of another size into the first frame's box, on black.
func boxed(info media.Info) string {
	width, height := cmp.Or(info.StoredWidth, info.Width), info.Height
	shape := float64(info.Width) / float64(info.Height)
	fit := func(side int, share string) string {
		return fmt.Sprintf("'if(lt(abs(dar/%[1]f-1),0.01),%[2]d,max(2,min(%[2]d,2*round(%[2]d*%[3]s/2))))'",
			shape, side, share)
	}
	return fmt.Sprintf("scale=w=%s:h=%s:eval=frame:flags=bicubic,pad=%d:%d:-1:-1:eval=frame",
		fit(width, fmt.Sprintf("dar/%f", shape)), fit(height, fmt.Sprintf("%f/dar", shape)), width, height)
}

// Sound returns a filter chain from the input's sound to the link out, in sync with the picture.
// Put it in a separate graph, because FFmpeg restarts the graph when the sound format changes.
func (s Source) Sound(number int, seconds float64, out string) string {
	start, format := "async=1:first_pts=0", "sample_rates=48000|44100:channel_layouts=stereo|mono"
	if s.Info.SoundVaries {
		start, format = "async=1", "sample_rates=48000:channel_layouts=stereo"
	}
	// Integer samples are always finite, as the encoder requires. Later in the chain, FFmpeg would
	// not find a layout for six channels.
	if s.SoundFilters != "" {
		format += "," + s.SoundFilters
	}
	return fmt.Sprintf("[%d:%s]aformat=s32,aresample=%s,aformat=%s,apad,atrim=end=%.6f%s",
		number, s.SoundTrack(), start, format, seconds, out)
}
