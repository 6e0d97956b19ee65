package ffmpeg

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The programs' output is not trusted either, because a file may have compromised them.

func FuzzStill(f *testing.F) {
	f.Add([]byte("P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n12345678"))
	f.Add([]byte("P7\nWIDTH -2\nHEIGHT 99999999999\nENDHDR\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		const side = 64
		pixels, size, err := readStill(bytes.NewReader(answer), side)
		if err == nil && (size.Width < 1 || size.Height < 1 || size.Width > side || size.Height > side ||
			len(pixels) != 4*size.Width*size.Height) {
			t.Errorf("got %d bytes of %v", len(pixels), size)
		}
	})
}

func FuzzProbe(f *testing.F) {
	f.Add([]byte(`{"format":{"duration":"1.5"},"streams":[{"codec_type":"video","width":16,"height":9,"pix_fmt":"yuv420p",
		"sample_aspect_ratio":"4:3","avg_frame_rate":"30000/1001","side_data_list":[{"rotation":-90}]},{"codec_type":"audio"}]}`))
	f.Add(
		[]byte(
			`{"streams":[{"codec_type":"video","width":-1,"height":9,"sample_aspect_ratio":"1e308:1e-308","duration":"1e308"}]}`,
		),
	)
	f.Fuzz(func(t *testing.T, answer []byte) {
		var report probeReport
		if json.Unmarshal(answer, &report) != nil {
			return
		}
		if info, decoded := report.video(coders{}); info.Duration < 0 || decoded && (info.Width < 1 || info.Height < 1) {
			t.Errorf("got %+v", info)
		}
	})
}

func FuzzPacketTimes(f *testing.F) {
	f.Add("video,0,0.0,0.0,0.04\naudio,1,0.04,N/A,0.04\n")
	f.Add("video,0,-1e308,NaN,1e308\nvideo,-1,1e308,Inf,1\n")
	f.Fuzz(func(t *testing.T, lines string) {
		if times := readPacketTimes(strings.NewReader(lines), time.Minute, true); times.duration < 0 || times.packets < 0 {
			t.Errorf("got %+v", times)
		}
	})
}
