package ffmpeg

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"cutroom/shared/domain/media"
)

// Only this file determines how tracks are read and corrected. The probe chooses them as specified in
// docs/contract/media.md#tracks.

// corrected reports whether the track is corrected. Corrections require a probe.
func (s Source) corrected() bool {
	kind, _ := media.Find(s.MIME)
	return kind.Video && !kind.Image && s.Info.Width > 0 && !s.Info.Tilted
}

// trackOptions selects the decoder. Filters handle size changes. Otherwise FFmpeg would restart the
// graph, which loses filter state and crashes some filters.
func (s Source) trackOptions() []string {
	var options []string
	if s.corrected() {
		options = append(options, "-reinit_filter:v", "0", "-noautorotate")
	}
	if s.Info.Decoder != "" {
		options = append(options, fmt.Sprintf("-c:V:%d", s.Info.PictureTrack), s.Info.Decoder)
	}
	return options
}

// PictureTrack and SoundTrack name tracks for "-map" and filter links. The names do not include the input's number.
func (s Source) PictureTrack() string { return fmt.Sprintf("V:%d", s.Info.PictureTrack) }

func (s Source) SoundTrack() string { return fmt.Sprintf("a:%d", s.Info.SoundTrack) }

// Picture starts a filter chain with the input's chosen video track, after corrections.
func (s Source) Picture(number int) string {
	return fmt.Sprintf("[%d:%s]%s", number, s.PictureTrack(), s.corrections())
}

// corrections returns filters that scale all frames to the first frame's size, and make them progressive and upright.
func (s Source) corrections() string {
	if kind, _ := media.Find(s.MIME); kind.Image {
		return "setsar=1"
	}
	if !s.corrected() {
		return "null"
	}
	filters := boxed(s.Info)
	if s.Info.Interlaced {
		filters += ",bwdif=mode=send_frame:deint=interlaced"
	}
	if turn := turns[s.Info.Orientation]; turn != "" {
		// Newer versions copy a frame's matrix to the result. FFmpeg 5 copies the file's matrix; see [unturn].
		filters += "," + turn + ",sidedata=mode=delete:type=DISPLAYMATRIX"
	}
	return filters
}

// unturn removes the rotation from a new MP4.
func unturn(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("ffmpeg: %w", err)
	}
	stat, err := file.Stat()
	if err == nil {
		if at := media.MatrixAt(file, stat.Size()); at > 0 {
			err = binary.Write(io.NewOffsetWriter(file, at), binary.BigEndian, media.Upright)
		}
	}
	return errors.Join(err, file.Close())
}

var subsampled = regexp.MustCompile("4[124][01]|422|nv|yuyv|uyvy")

// boxed fits later frames of another size into the first frame's size, on black.
func boxed(info media.Info) string {
	across, height := info.Width, info.Height
	if media.Sideways(info.Orientation) {
		across, height = height, across
	}
	width, shape := cmp.Or(info.StoredWidth, across), float64(across)/float64(height)
	start := ""
	if subsampled.MatchString(info.PixelFormat) && (width%2 == 1 || height%2 == 1) {
		start = "format=yuv444p|yuva444p|yuv444p10|yuva444p10|yuv444p12|yuva444p12," // pad needs this for odd sides
	}
	fit := func(side int, share string) string {
		return fmt.Sprintf("'if(lt(abs(dar/%[1]f-1),0.01),%[2]d,max(2,min(%[2]d,2*round(%[2]d*%[3]s/2))))'",
			shape, side, share)
	}
	return start + fmt.Sprintf("scale=w=%s:h=%s:eval=frame:flags=bicubic,pad=%d:%d:-1:-1:eval=frame",
		fit(width, fmt.Sprintf("dar/%f", shape)), fit(height, fmt.Sprintf("%f/dar", shape)), width, height)
}

// Sound returns a filter chain from the input's sound to an output link, in sync with the picture. out is the link's
// name. Put the chain in a separate graph, because FFmpeg restarts the graph when the sound format changes.
func (s Source) Sound(number int, seconds float64, out string) string {
	start, format := "async=1", "sample_rates=48000|44100:channel_layouts=stereo|mono"
	switch {
	case s.Info.SoundVaries:
		format = "sample_rates=48000:channel_layouts=stereo"
	case s.Info.SoundLate:
		start += ":first_pts=0" // a graph that restarts would add the silence again
	}
	// Convert to integer samples, which are always finite, as the encoder requires. If the conversion came later in
	// the chain, FFmpeg would not find a layout for six channels.
	if s.SoundFilters != "" {
		format += "," + s.SoundFilters
	}
	return fmt.Sprintf("[%d:%s]aformat=s32,aresample=%s,aformat=%s,apad,atrim=end=%.6f%s",
		number, s.SoundTrack(), start, format, seconds, out)
}
