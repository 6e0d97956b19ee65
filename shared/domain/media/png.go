package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"

	"cutroom/shared/domain/fault"
)

const (
	maxPNGText = 32 << 20 // decompressed bytes of text and color profiles
	// maxPNGTexts limits the number of texts and profiles. maxPNGChunks limits the number of all chunks.
	maxPNGTexts, maxPNGChunks = 1_000, 100_000
	// maxPNGHead limits the offset of a chunk's compressed data, which follows the keywords and the language.
	maxPNGHead = 1024
)

// CheckPNG rejects a PNG whose text and color profiles take too long to decode. FFmpeg decodes them
// although no result contains them, and a 2 MB file can hold 2 GB of text.
//
// Errors: fault.Invalid, with a message for the sender; errors from r.
func CheckPNG(r io.ReaderAt, size int64) error {
	left, texts, chunks := int64(maxPNGText), 0, 0
	for at := int64(8); at+8 <= size; chunks++ {
		var head [8]byte
		if _, err := r.ReadAt(head[:], at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		kind, length := string(head[4:]), int64(binary.BigEndian.Uint32(head[:]))
		switch kind {
		case "IEND":
			return nil
		case "tEXt", "zTXt", "iTXt", "iCCP":
			texts++
			left -= length + decompressed(io.NewSectionReader(r, at+8, length), kind, left)
		}
		if left < 0 || texts > maxPNGTexts || chunks > maxPNGChunks {
			return fault.New(fault.Invalid, "The PNG has more than %d MiB of text and color profiles, more than %d texts, "+
				"or more than %d chunks. Save it without metadata.", maxPNGText>>20, maxPNGTexts, maxPNGChunks)
		}
		at += 8 + length + 4
	}
	return nil
}

// decompressed returns the length of a chunk's decompressed data. It stops counting beyond the given limit.
func decompressed(chunk *io.SectionReader, kind string, most int64) int64 {
	var buffer [maxPNGHead]byte
	n, _ := chunk.ReadAt(buffer[:], 0)
	content := buffer[:n]
	if n == len(buffer) && bytes.IndexByte(content, 0) < 0 {
		return most + 1 // the keyword is too long
	}
	at := bytes.IndexByte(content, 0) + 2 // after the keyword and the compression method
	if kind == "iTXt" {
		if at++; at > len(content) || content[at-2] == 0 { // not compressed
			return 0
		}
		for range 2 { // skip the language and the translated keyword
			at += bytes.IndexByte(content[min(at, len(content)):], 0) + 1
		}
	}
	if kind == "tEXt" || int64(at) >= chunk.Size() {
		return 0
	}
	inflater, err := zlib.NewReader(io.NewSectionReader(chunk, int64(at), chunk.Size()-int64(at)))
	if err != nil {
		return 0
	}
	defer inflater.Close()
	length, _ := io.CopyN(io.Discard, inflater, max(most, 0)+1)
	return length
}
