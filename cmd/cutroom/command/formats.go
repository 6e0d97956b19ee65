package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cutroom/shared/client"
)

// converted holds ffmpeg's arguments for the formats that the service does not return. The service
// returns PNG images and MP4 videos.
var converted = map[string][]string{
	".jpg":  {"-q:v", "2", "-c:v", "mjpeg", "-f", "image2pipe"},
	".jpeg": {"-q:v", "2", "-c:v", "mjpeg", "-f", "image2pipe"},
	".webp": {"-quality", "90", "-loop", "0", "-f", "webp"},
	".gif":  {"-vf", palette, "-f", "gif"},
}

const palette = "split[a][b];[a]palettegen[p];[b][p]paletteuse"

// smallClip reduces a clip for a GIF, because a GIF takes 10 MB per second of 720p video.
const smallClip = "fps=12,scale='min(480,iw)':-1:flags=lanczos,"

const pngHead = "\x89PNG\r\n\x1a\n"

// checkFormat returns an error if the result cannot be converted to the format of the path's extension. own is the
// extension of the service's result, or "" if unknown.
func checkFormat(output, own string) error {
	extension := strings.ToLower(filepath.Ext(output))
	_, known := converted[extension]
	switch {
	case output == "-" || extension == "" || extension == own:
		return nil
	case own == "" && (extension == ".png" || extension == ".mp4"):
		return nil
	case !known || own == ".mp4" && strings.HasPrefix(extension, ".jp"):
		formats := ".png, .jpg, .webp or .gif"
		if own == ".mp4" {
			formats = ".mp4, .webp or .gif"
		}
		return &UsageError{fmt.Sprintf("-o %s: the extension must be %s", output, formats)}
	}
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		return fmt.Errorf("-o %s: writing %s needs ffmpeg, which is not installed", output, extension)
	}
	return nil
}

// convert downloads a job's result and converts it to the format that the output path's extension names. It calls
// fetch to download.
func convert(ctx context.Context, id, output string, arguments []string, fetch func(path string) error) error {
	original := client.Partial(output, id) + ".original"
	if err := fetch(original); err != nil {
		return err
	}
	defer os.Remove(original)
	made := client.Partial(output, id) + strings.ToLower(filepath.Ext(output))
	defer os.Remove(made)
	// Only the service's own formats are allowed, because a playlist could name local files.
	first, err := head(original)
	if err != nil {
		return err
	}
	format := "mov"
	if first == pngHead {
		format = "png_pipe"
	} else if strings.HasPrefix(strings.ToLower(filepath.Ext(output)), ".jp") {
		return &UsageError{fmt.Sprintf("-o %s: the extension of a video must be .mp4, .webp or .gif", output)}
	}
	if format == "mov" && strings.HasSuffix(made, ".gif") {
		arguments = []string{"-vf", smallClip + palette, "-f", "gif"}
	}
	arguments = append([]string{
		"-nostdin", "-v", "error", "-y", "-protocol_whitelist", "file", "-f", format, "-i", "file:" + original,
	}, append(arguments, "file:"+made)...)
	if text, err := exec.CommandContext(ctx, "ffmpeg", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: ffmpeg cannot write this format: %w: %.300s", output, err, text)
	}
	return os.Rename(made, output)
}

// head returns the first bytes of a file, enough to compare with pngHead.
func head(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	first := make([]byte, len(pngHead))
	_, err = io.ReadFull(file, first)
	return string(first), err
}
