package room

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"
)

const (
	// maxSections limits an offer's sections. maxLines limits its lines, not counting the client's addresses.
	// Browsers send up to 1,000 lines.
	maxSections, maxLines = 24, 4096
	// maxOffer limits the size of the offer that readOffer returns, in bytes. A browser's section has about 1,500.
	maxOffer = 48 << 10
	// maxLine is the maximum length of a line in bytes. A long line would be slow, because the library compares its
	// elements with each other.
	maxLine = 2 << 10
	// maxParameters limits a codec's parameters, in bytes, because the library compares those of all sections.
	maxParameters = 128
	// leastElement is the minimum average size, in bytes, of a line or of a section's codec.
	leastElement = 8
)

// errOffer is returned for an offer that is ambiguous or would take too long to process.
var errOffer = errors.New("room: the session description has too many sections, codecs or lines, or is ambiguous")

// usual is the maximum number of lines with each attribute, in each section and in the session's own part. Other
// attributes are removed, because the library acts on them and keeps memory for each line.
var usual = map[string]int{
	"group": 1, "extmap-allow-mixed": 1, "msid-semantic": 1, "ice-ufrag": 1, "ice-pwd": 1, "ice-options": 1,
	"fingerprint": 1, "setup": 1, "mid": 1, "rtcp-mux": 1, "rtcp-rsize": 1, "rtpmap": 2, "fmtp": 2, "rtcp-fb": 8,
	"extmap": 6, "sendrecv": 1, "sendonly": 1, "recvonly": 1, "inactive": 1, "msid": 1, "ssrc": 8, "ssrc-group": 1,
	"rid": 1, "simulcast": 1,
}

// extensions lists the header extensions of registerCodecs.
var extensions = []string{
	sdp.TransportCCURI, playoutURI, colorURI, sdp.SDESMidURI, sdp.SDESRTPStreamIDURI, sdp.SDESRepairRTPStreamIDURI,
}

// description is a client's offer or answer, prepared for the library.
type description struct {
	text string
	// sound is true if the client sends sound.
	sound bool
	// sources maps the SSRC of each stream to the mid of its section. layered contains the mids of sections whose
	// stream has a rid instead.
	sources map[uint32]string
	layered map[string]bool
}

// readOffer prepares a client's offer. It keeps only the usual attributes, the supported codecs, the best of a
// camera's sizes, and one stream per section. It removes the client's addresses, because the server never initiates a
// connection. It rejects data channels, because the server does not use them, and the library's are easily flooded.
func readOffer(text string) (d description, err error) {
	text, compact := withoutAddresses(text)
	if !compact {
		return d, errOffer
	}
	var offer sdp.SessionDescription
	if err := offer.UnmarshalString(text); err != nil {
		return d, err
	}
	if len(offer.MediaDescriptions) > maxSections {
		return d, errOffer
	}
	d.sources, d.layered = map[uint32]string{}, map[string]bool{}
	mids, rejected := map[string]bool{}, []string(nil)
	offer.Attributes = tidy(offer.Attributes, func(sdp.Attribute) bool { return true })
	for _, media := range offer.MediaDescriptions {
		sources := tidySection(media)
		mid, _ := media.Attribute("mid")
		if mid == "" || mids[mid] {
			return d, errOffer
		}
		mids[mid] = true
		if _, layered := media.Attribute("rid"); layered {
			d.layered[mid] = true
		}
		for _, source := range sources {
			if _, taken := d.sources[source]; taken {
				return d, errOffer
			}
			d.sources[source] = mid
		}
		d.sound = d.sound || sendsSound(media)
		if media.MediaName.Media == "application" {
			media.MediaName.Port = sdp.RangedPort{}
			rejected = append(rejected, mid)
		}
	}
	for i, attribute := range offer.Attributes {
		if attribute.Key == "group" {
			offer.Attributes[i].Value = strings.Join(slices.DeleteFunc(strings.Fields(attribute.Value), func(mid string) bool {
				return slices.Contains(rejected, mid)
			}), " ")
		}
	}
	whole, err := offer.Marshal()
	if len(whole) > maxOffer {
		err = errOffer
	}
	d.text = string(whole)
	return d, err
}

// tidySection returns the SSRCs of the section's stream and of its retransmissions, if it has them.
func tidySection(media *sdp.MediaDescription) (sources []uint32) {
	for i, attribute := range media.Attributes {
		media.Attributes[i].Value = strings.Join(strings.Fields(attribute.Value), " ")
	}
	best, codecs := bestLayer(media), codecsOf(media)
	media.MediaName.Formats = codecs
	if best == "" {
		sources = declared(media)
	}
	group := "FID"
	for _, source := range sources {
		group += fmt.Sprintf(" %d", source)
	}
	media.Attributes = tidy(media.Attributes, func(a sdp.Attribute) bool {
		first, second := cut(a.Value)
		switch a.Key {
		case "rid":
			return best != "" && first == best
		case "rtpmap", "fmtp", "rtcp-fb":
			return len(a.Value) <= maxParameters && (first == "*" || slices.Contains(codecs, first))
		case "extmap":
			uri, _ := cut(second)
			return slices.Contains(extensions, uri)
		case "ssrc":
			return slices.ContainsFunc(sources, func(source uint32) bool { return first == fmt.Sprint(source) })
		case "ssrc-group":
			return len(sources) == 2 && a.Value == group
		}
		return true
	})
	for i, a := range media.Attributes {
		if a.Key == "simulcast" && best != "" {
			media.Attributes[i].Value = "send " + best
		}
	}
	if best == "" && len(sources) == 0 {
		// Otherwise, the library would assign any stream to the section.
		media.Attributes = append(media.Attributes, sdp.Attribute{Key: "ssrc", Value: "none"})
	}
	return sources
}

// declared returns the SSRCs of a section's first stream and, if the section has them, of its retransmissions.
func declared(media *sdp.MediaDescription) (sources []uint32) {
	for _, a := range media.Attributes {
		first, rest := cut(a.Value)
		fields := []string{first}
		if a.Key == "ssrc-group" && first == "FID" {
			fields = strings.Fields(rest)
		} else if a.Key != "ssrc" {
			continue
		}
		if len(fields) > 2 {
			continue
		}
		var numbers []uint32
		for _, field := range fields {
			number, err := strconv.ParseUint(field, 10, 32)
			if err == nil && fmt.Sprint(number) == field && !slices.Contains(numbers, uint32(number)) {
				numbers = append(numbers, uint32(number))
			}
		}
		if len(numbers) == len(fields) && len(numbers) > len(sources) && (sources == nil || numbers[0] == sources[0]) {
			sources = numbers
		}
	}
	return sources
}

// tidy returns the usual attributes for which the function keep returns true.
func tidy(attributes []sdp.Attribute, keep func(sdp.Attribute) bool) []sdp.Attribute {
	counts := map[string]int{}
	return slices.DeleteFunc(attributes, func(a sdp.Attribute) bool {
		if counts[a.Key] >= usual[a.Key] || !keep(a) {
			return true
		}
		counts[a.Key]++
		return false
	})
}

// codecsOf returns the payload types of a section's supported codec and of its retransmissions. If no codec is
// supported, it returns the first, so that the library rejects the section.
func codecsOf(media *sdp.MediaDescription) []string {
	names, repeats := map[string]string{}, map[string]string{}
	for _, a := range media.Attributes {
		payload, value := cut(a.Value)
		switch a.Key {
		case "rtpmap":
			name, _, _ := strings.Cut(value, "/")
			names[payload] = strings.ToLower(name)
		case "fmtp":
			repeats[payload] = strings.TrimPrefix(value, "apt=")
		}
	}
	formats := media.MediaName.Formats
	at := slices.IndexFunc(formats, func(one string) bool { return names[one] == "vp8" || names[one] == "opus" })
	if at < 0 {
		return formats[:min(1, len(formats))]
	}
	codecs := formats[at : at+1 : at+1]
	for _, one := range formats {
		if names[one] == "rtx" && repeats[one] == formats[at] {
			return append(codecs, one)
		}
	}
	return codecs
}

func cut(value string) (first, rest string) {
	first, rest, _ = strings.Cut(value, " ")
	return first, rest
}

// withoutAddresses removes the client's addresses and unused kinds of lines. compact is false if too many lines
// remain or, for their length, too many elements, each of which needs 100 bytes of memory or more. compact is also
// false if there is more than one time description (RFC 8866, sections 5.9 to 5.11), because clients send only one.
func withoutAddresses(text string) (kept string, compact bool) {
	var out strings.Builder
	out.Grow(len(text))
	lines, elements, times := 0, 0, 0
	for line := range strings.Lines(text) {
		// Reject a lone CR, because the library treats it as a line ending only when it parses the text a second
		// time.
		if strings.Contains(strings.TrimSuffix(line, "\r\n"), "\r") {
			return "", false
		}
		if strings.HasPrefix(line, "a=candidate") {
			continue
		}
		switch line[0] {
		case 'm':
			elements += strings.Count(line, " ")
		case 't':
			times++
		case 'v', 'o', 's', 'c', 'a', '\r', '\n':
		default:
			continue
		}
		if len(line) > maxLine {
			return "", false
		}
		out.WriteString(line)
		lines++
	}
	kept = out.String()
	return kept, times <= 1 && lines <= maxLines && (lines+elements)*leastElement <= len(kept)
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
		rid, _ := cut(attribute.Value)
		if next := max(strings.Index(layers, rid), 0); rid != "" && next >= rank {
			best, rank = rid, next
		}
	}
	return best
}

func sendsSound(media *sdp.MediaDescription) bool {
	_, only := media.Attribute("sendonly")
	_, both := media.Attribute("sendrecv")
	return media.MediaName.Media == "audio" && media.MediaName.Port.Value > 0 && (only || both)
}
