package ffmpeg

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/media"
	"cutroom/shared/platform/panics"
)

const (
	// A five-minute video at media.MaxFrameRate has fewer packets.
	maxPackets = 150_000
	// assumedFrameRate is used for a video without a declared rate, in frames per second.
	assumedFrameRate = 25
)

// measure reads packet times. It counts the pictures and finds the duration of a video that does not declare it, such
// as a browser recording. The duration includes sound before and after the pictures. measure stops when a limit is
// exceeded.
func (t *Tools) measure(ctx context.Context, path, mime string,
	info media.Info) (duration time.Duration, packets int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return 0, 0, fmt.Errorf("ffmpeg: %w", err)
	}
	defer read.Close()
	result := make(chan packetTimes)
	go func() {
		var times packetTimes
		defer func() { result <- times }()
		defer panics.Error(&times.failed)
		times = readPacketTimes(read, t.limits.VideoDuration+media.Grace, mime == "video/mp2t")
		if times.beyond {
			cancel()
		}
	}()
	log, err := t.runProbe(ctx, path, mime, write,
		"-show_entries", "packet=codec_type,stream_index,pts_time,dts_time,duration_time", "-of", "csv=p=0")
	write.Close()
	times := <-result
	switch {
	case times.failed != nil:
		return 0, 0, times.failed
	case times.beyond:
		return max(times.duration, time.Second), times.packets, nil
	case err != nil:
		return 0, 0, err
	case times.packets == 0:
		return 0, 0, t.undecoded(ctx, log, "The video has no pictures.")
	}
	frameRate := cmp.Or(info.FrameRate, assumedFrameRate)
	return max(times.duration, time.Duration(float64(time.Second)/frameRate)), times.packets, nil
}

type packetTimes struct {
	// packets is the highest number of pictures in any track.
	packets  int
	duration time.Duration
	beyond   bool
	// failed is set if the reader panicked.
	failed error
}

// readPacketTimes reads lines such as "video,0,pts,dts,duration". Each time is in seconds or N/A.
func readPacketTimes(r io.Reader, limit time.Duration, jumps bool) packetTimes {
	var times packetTimes
	var pictures [maxStreams]int
	first, last := math.Inf(1), math.Inf(-1)
	lines := bufio.NewScanner(r)
	var clocks [maxStreams]clock
	shift := 0.0
	for lines.Scan() && !times.beyond {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) < 5 || fields[0] != "video" && fields[0] != "audio" {
			continue // other data, or a packet's side data
		}
		track, err := strconv.Atoi(fields[1])
		if err != nil || track < 0 || track >= maxStreams {
			continue
		}
		if fields[0] == "video" {
			pictures[track]++
			times.packets = max(times.packets, pictures[track])
		}
		if at, known := firstNumber(fields[2:4]); known {
			length, _ := firstNumber(fields[4:5])
			if jumps {
				decoded, _ := firstNumber([]string{fields[3], fields[2]})
				shift = clocks[track].next(decoded, length, shift)
			}
			first, last = min(first, at+shift), max(last, at+shift+length)
			times.duration = media.Seconds(last - first)
		}
		times.beyond = times.duration > limit || times.packets > maxPackets
	}
	_, _ = io.Copy(io.Discard, r)
	return times
}

// clock is the time, in seconds, at which a track's next packet is due. It is computed as FFmpeg does.
type clock struct {
	running   bool
	last, due float64
}

// next returns the shift to add to a packet's time. The shift changes if the time jumps, for
// example where two recordings were joined, because FFmpeg continues without a gap.
func (c *clock) next(at, length, shift float64) float64 {
	const gap, back = 10, 0.1
	if ahead := at + shift - c.due; c.running && (math.Abs(ahead) > gap || at+shift+back < c.last) {
		shift -= ahead
	}
	c.running, c.last, c.due = true, at+shift, at+shift+length
	return shift
}

func firstNumber(fields []string) (float64, bool) {
	for _, field := range fields {
		if n, err := strconv.ParseFloat(field, 64); err == nil {
			return n, true
		}
	}
	return 0, false
}
