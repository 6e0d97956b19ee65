package mediatest

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// SoundRate is the rate of the samples that Sound returns, in samples per second.
const SoundRate = 8000

// Sound decodes a file's sound to one channel.
func Sound(t testing.TB, path string) []int16 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-ac", "1",
		"-ar", fmt.Sprint(SoundRate), "-f", "s16le", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	return Samples(out)
}

// Samples converts bytes in little-endian order to samples.
func Samples(raw []byte) []int16 {
	samples := make([]int16, len(raw)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return samples
}

// Tones returns the frequency in each of several equal parts of a sound, measured by zero crossings.
func Tones(sound []int16, parts int) []float64 {
	var heard []float64
	part := len(sound) / max(1, parts)
	for i := range parts {
		from, to, crossed := i*part+part/4, i*part+3*part/4, 0
		for at := from; at < to; at++ {
			if sound[at] < 0 && sound[at+1] >= 0 {
				crossed++
			}
		}
		heard = append(heard, float64(crossed)*SoundRate/float64(to-from))
	}
	return heard
}

var meanVolume = regexp.MustCompile(`mean_volume: (-?[\d.]+) dB`)

// Loudness returns the mean volume of a file's sound in dB, or -100 for silence.
func Loudness(t testing.TB, path string) float64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-hide_banner", "-i", path, "-vn", "-af", "volumedetect", "-f", "null", "-").CombinedOutput()
	found := meanVolume.FindSubmatch(out)
	if err != nil || found == nil {
		return -100
	}
	db, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
