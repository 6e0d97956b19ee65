package mediatest

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// Facts are what ffprobe says about a file.
type Facts struct {
	Streams []struct {
		CodecType         string `json:"codec_type"`
		CodecName         string `json:"codec_name"`
		Profile           string
		PixFmt            string `json:"pix_fmt"`
		Width, Height     int
		SampleAspectRatio string `json:"sample_aspect_ratio"`
		HasBFrames        int    `json:"has_b_frames"`
		RFrameRate        string `json:"r_frame_rate"`
		NbFrames          string `json:"nb_frames"`
		Duration          string
		ColorRange        string `json:"color_range"`
		ColorSpace        string `json:"color_space"`
		ColorTransfer     string `json:"color_transfer"`
		ColorPrimaries    string `json:"color_primaries"`
		Channels          int
	}
	Format struct{ Duration string }
}

// Inspect runs ffprobe.
func Inspect(t testing.TB, path string) Facts {
	t.Helper()
	out, err := exec.CommandContext(
		t.Context(), "ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", path,
	).Output()
	if err != nil {
		t.Fatalf("ffprobe: %v", err)
	}
	var f Facts
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}
