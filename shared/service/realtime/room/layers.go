package room

import (
	"errors"
	"strings"

	"github.com/pion/sdp/v3"
)

const (
	// maxSections is how many sections an offer may have, and maxLines how many lines of
	// attributes, in one section and in all. Browsers that send all they can have 1,000.
	maxSections, maxSectionLines, maxLines = 64, 512, 4096
	// maxFormats is how many codecs a section may offer, each with its retransmissions. For
	// each, the library reads all lines of the section.
	maxFormats = 96
	// leastElement is how many bytes a line, or a codec of a section, has on average. Those of
	// clients have 25.
	leastElement = 8
)

// errOffer refuses an offer that would take too much time to read, or is read in two ways.
var errOffer = errors.New("room: a session description of more sections, codecs or lines than any client has, or of odd ones")

// readOffer reads a client's offer and makes of it what the server answers to: of a camera
// that is offered in several sizes the best alone, which makes browsers send no other, and
// none of the client's addresses, as the server is called and never calls.
//
// Errors: errOffer; those of the library.
func readOffer(text string) (string, error) {
	// The library ends a line there the second time that it reads it, not the first.
	if strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), "\r") {
		return "", errOffer
	}
	if !isCompact(text) {
		return "", errOffer
	}
	var offer sdp.SessionDescription
	if err := offer.UnmarshalString(text); err != nil {
		return "", err
	}
	if !isUsual(&offer) {
		return "", errOffer
	}
	for _, media := range offer.MediaDescriptions {
		best := bestLayer(media)
		kept := media.Attributes[:0]
		for _, attribute := range media.Attributes {
			switch {
			case attribute.Key == "candidate":
				continue
			case best != "" && attribute.Key == "rid" && ridOf(attribute.Value) != best:
				continue
			case best != "" && attribute.Key == "simulcast":
				attribute.Value = "send " + best
			}
			kept = append(kept, attribute)
		}
		media.Attributes = kept
	}
	out, err := offer.Marshal()
	return string(out), err
}

// isCompact reports whether a description has so few elements for its size that the library
// may parse it, which takes 100 bytes of memory or more for each. Clients send no times beside
// one, and no repetitions of it (RFC 8866, sections 5.9 to 5.11).
func isCompact(text string) bool {
	elements, times := 0, 0
	for line := range strings.Lines(text) {
		elements++
		switch line[0] {
		case 'm':
			elements += strings.Count(line, " ")
		case 't':
			times++
		case 'r', 'z':
			return false
		}
	}
	return times <= 1 && elements*leastElement <= len(text)
}

// isUsual reports whether a client may have made the offer: what the library does with
// others takes seconds. Candidates do not count, as they are left out.
func isUsual(offer *sdp.SessionDescription) bool {
	lines := len(offer.Attributes)
	for _, media := range offer.MediaDescriptions {
		own := 0
		for _, attribute := range media.Attributes {
			if attribute.Key != "candidate" {
				own++
			}
		}
		if own > maxSectionLines || len(media.MediaName.Formats) > maxFormats {
			return false
		}
		lines += own
	}
	return len(offer.MediaDescriptions) <= maxSections && lines <= maxLines
}

// closeEmpty makes inactive the sections of an answer that the server has no track for yet:
// the library says of them that it sends, and clients would look for whose track it is.
//
// Errors: those of the library.
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

// layers are the names that clients call the sizes of a camera by, the smallest first.
// One of 640 pixels has no f.
const layers = "qhf"

// bestLayer returns the name of the best size that a camera is offered in; "" if it is
// offered in one.
func bestLayer(media *sdp.MediaDescription) (best string) {
	rank := -1
	for _, attribute := range media.Attributes {
		if attribute.Key != "rid" {
			continue
		}
		// Of names that nobody knows the last one counts.
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

// offersAudio reports whether the client sends audio by its offer.
func offersAudio(text string) bool {
	var offer sdp.SessionDescription
	if !isCompact(text) || offer.UnmarshalString(text) != nil {
		return false
	}
	for _, media := range offer.MediaDescriptions {
		if media.MediaName.Media != "audio" || media.MediaName.Port.Value == 0 {
			continue
		}
		_, only := media.Attribute("sendonly")
		_, both := media.Attribute("sendrecv")
		if only || both {
			return true
		}
	}
	return false
}
