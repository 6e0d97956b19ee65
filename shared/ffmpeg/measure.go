package ffmpeg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/engine"
)

const (
	// maxPackets bounds how many packets are counted to find a duration: five
	// minutes at 240 frames per second, and as many again.
	maxPackets = 150_000
	// assumedFrameRate is that of a video which does not tell, in frames per
	// second.
	assumedFrameRate = 25
)

// measure finds the duration of a video whose header does not tell it, as that
// of a browser's recording, by reading the times of its packets, up to where the
// limit is passed.
func (t *Tools) measure(ctx context.Context, path, mime string, frameRate float64) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("ffmpeg: %w", err)
	}
	defer read.Close()
	result := make(chan packetTimes)
	go func() {
		times := readPacketTimes(read, t.limits.VideoDuration)
		if times.beyond {
			cancel()
		}
		result <- times
	}()
	err = t.runProbe(ctx, path, mime, write,
		"-select_streams", "V:0", "-show_entries", "packet=pts_time,dts_time,duration_time", "-of", "csv=p=0")
	write.Close()
	times := <-result
	switch {
	case times.beyond:
		return max(times.duration, t.limits.VideoDuration+1), nil
	case err != nil:
		return 0, err
	case times.packets == 0:
		return 0, engine.InvalidInput(nil, "The video has no pictures.")
	}
	if frameRate == 0 {
		frameRate = assumedFrameRate
	}
	return max(times.duration, time.Duration(float64(time.Second)/frameRate)), nil
}

// packetTimes is what the packets of a track tell.
type packetTimes struct {
	packets  int
	duration time.Duration
	// beyond says that the limit was passed, so that the rest was not read.
	beyond bool
}

// readPacketTimes reads lines "pts,dts,duration", in seconds or N/A.
func readPacketTimes(r io.Reader, limit time.Duration) packetTimes {
	var times packetTimes
	var first, last float64
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ",")
		at, known := firstNumber(fields)
		times.packets++
		if !known {
			continue
		}
		end := at
		if len(fields) > 2 {
			if length, ok := firstNumber(fields[2:3]); ok {
				end += length
			}
		}
		if times.packets == 1 {
			first = at
		}
		first, last = min(first, at), max(last, end)
		times.duration = parseSeconds(strconv.FormatFloat(last-first, 'f', 6, 64))
		if times.duration > limit || times.packets > maxPackets {
			times.beyond = true
			break
		}
	}
	_, _ = io.Copy(io.Discard, r)
	return times
}

// firstNumber gives the first of up to two fields that is a number.
func firstNumber(fields []string) (float64, bool) {
	for _, field := range fields[:min(2, len(fields))] {
		if n, err := strconv.ParseFloat(field, 64); err == nil {
			return n, true
		}
	}
	return 0, false
}
