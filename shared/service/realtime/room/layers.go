package room

import (
	"errors"
	"slices"
	"strings"

	"github.com/pion/sdp/v3"
)

const (
	// maxSections limits an offer's sections, maxSectionLines each section's attribute lines, and
	// maxLines all lines except the client's addresses. Browsers send up to 1,000 lines.
	maxSections, maxSectionLines, maxLines = 64, 512, 4096
	// maxFormats limits a section's formats. The library reads all of a section's lines for each format.
	maxFormats = 96
	// maxReads limits how many lines the library reads for all formats together. Browsers cause up
	// to 7,000 reads per video section.
	maxReads = 40_000
	// leastElement is the minimum average size, in bytes, of a line or of a section's codec.
	leastElement = 8
)

// errOffer is returned for an offer that is ambiguous or would take too long to process.
var errOffer = errors.New("room: the session description has too many sections, codecs or lines, or is ambiguous")

// readOffer prepares a client's offer for the library, and reports whether the client sends sound. It keeps only the
// best of a camera's sizes, and removes the client's addresses, because the server never initiates a connection.
func readOffer(text string) (out string, sound bool, err error) {
	text, compact := withoutAddresses(text)
	if !compact {
		return "", false, errOffer
	}
	var offer sdp.SessionDescription
	if err := offer.UnmarshalString(text); err != nil {
		return "", false, err
	}
	if !isUsual(&offer) {
		return "", false, errOffer
	}
	offer.Attributes = slices.DeleteFunc(offer.Attributes, isUnusual)
	for _, media := range offer.MediaDescriptions {
		best := bestLayer(media)
		kept := media.Attributes[:0]
		for _, attribute := range media.Attributes {
			attribute.Value = strings.Join(strings.Fields(attribute.Value), " ")
			switch {
			case isUnusual(attribute):
				continue
			case best != "" && attribute.Key == "rid" && ridOf(attribute.Value) != best:
				continue
			case best != "" && attribute.Key == "simulcast":
				attribute.Value = "send " + best
			}
			kept = append(kept, attribute)
		}
		media.Attributes = kept
		sound = sound || sendsSound(media)
	}
	whole, err := offer.Marshal()
	return string(whole), sound, err
}

// usual lists the attributes that live video uses. The library also acts on others.
var usual = strings.Fields("group extmap-allow-mixed msid-semantic ice-ufrag ice-pwd ice-options ice-lite fingerprint setup mid " +
	"rtcp-mux rtcp-rsize rtpmap fmtp rtcp-fb extmap sendrecv sendonly recvonly inactive msid ssrc ssrc-group rid simulcast " +
	"sctp-port max-message-size")

func isUnusual(attribute sdp.Attribute) bool { return !slices.Contains(usual, attribute.Key) }

// withoutAddresses removes the client's addresses. compact is false if the rest has too many
// elements for its length, because each element needs 100 bytes of memory or more. Clients send one
// time without repetitions (RFC 8866, sections 5.9 to 5.11).
func withoutAddresses(text string) (kept string, compact bool) {
	var out strings.Builder
	out.Grow(len(text))
	lines, elements, times := 0, 0, 0
	for line := range strings.Lines(text) {
		// The library treats a lone CR as a line ending only when it parses the text a second time.
		if strings.Contains(strings.TrimSuffix(line, "\r\n"), "\r") {
			return "", false
		}
		if strings.HasPrefix(line, "a=candidate") {
			continue
		}
		out.WriteString(line)
		lines++
		switch line[0] {
		case 'm':
			elements += strings.Count(line, " ")
		case 't':
			times++
		case 'r', 'z':
			return "", false
		}
	}
	kept = out.String()
	return kept, times <= 1 && lines <= maxLines && (lines+elements)*leastElement <= len(kept)
}

// isUsual reports whether an offer resembles the offers of real clients. For other offers, the
// library may take seconds.
func isUsual(offer *sdp.SessionDescription) bool {
	reads := 0
	for _, media := range offer.MediaDescriptions {
		lines, formats := len(media.Attributes), len(media.MediaName.Formats)
		if lines > maxSectionLines || formats > maxFormats {
			return false
		}
		reads += lines * formats
	}
	return len(offer.MediaDescriptions) <= maxSections && reads <= maxReads
}

// closeEmpty makes sections without a track inactive. Otherwise, clients would expect a track in them.
func closeEmpty(text string) (string, error) {
	var answer sdp.SessionDescription
	if err := answer.UnmarshalString(text); err != nil {
		return "", err
	}
	for _, media := range answer.MediaDescriptions {
		if _, has := media.Attribute("msid"); has {
			continue
		}
		for i, attribute := range media.Attributes {
			if attribute.Key == "sendonly" {
				media.Attributes[i].Key = "inactive"
			}
		}
	}
	out, err := answer.Marshal()
	return string(out), err
}

// layers contains the names that clients give to a camera's sizes, one letter each, smallest first.
const layers = "qhf"

// bestLayer returns the name of the camera's best size, or "" if there is only one.
func bestLayer(media *sdp.MediaDescription) (best string) {
	rank := -1
	for _, attribute := range media.Attributes {
		if attribute.Key != "rid" {
			continue
		}
		// If several names are unknown, use the last one.
		rid := ridOf(attribute.Value)
		if next := max(strings.Index(layers, rid), 0); rid != "" && next >= rank {
			best, rank = rid, next
		}
	}
	return best
}

func ridOf(value string) string {
	rid, _, _ := strings.Cut(value, " ")
	return rid
}

func sendsSound(media *sdp.MediaDescription) bool {
	_, only := media.Attribute("sendonly")
	_, both := media.Attribute("sendrecv")
	return media.MediaName.Media == "audio" && media.MediaName.Port.Value > 0 && (only || both)
}
