package gateway

import (
	"cmp"
	"io"
	"math"
	"mime"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/upstream"
)

// This file handles transcriptions and speech (docs/contract/dialects.md#audio).

const (
	// audioTokens is how many tokens a second of audio counts as.
	audioTokens = 10
	// usualAudio and leastAudio are rates of compressed audio in bytes per second. The length of a file is estimated
	// with the first for usage, and with the second for budgets.
	usualAudio, leastAudio = 4000, 1000
	// maxSpeech limits the size of speech in bytes.
	maxSpeech = 256 << 20
)

// audioCounts returns the usage of the call. rate is used if the length of the audio is unknown.
func (c *completion) audioCounts(rate int) usage.Counts {
	switch {
	case c.route == catalog.Speech:
		return usage.Counts{Requests: 1, Characters: int64(c.request.Characters)}
	case c.heard > 0:
		return usage.Counts{Requests: 1, AudioSeconds: c.heard}
	}
	return usage.Counts{Requests: 1, AudioSeconds: c.request.AudioSeconds(rate), Estimated: 1}
}

// hear reads the length of the audio from a response or event: in seconds, or as tokens.
func (c *completion) hear(answer gjson.Result) {
	seconds := cmp.Or(answer.Get("usage.seconds").Float(), answer.Get("duration").Float(),
		answer.Get("usage.input_token_details.audio_tokens").Float()/audioTokens)
	switch {
	case seconds > 7*24*3600 || seconds < 0: // a week
		c.counter.implausible = true
	case seconds > 0:
		c.heard = int64(math.Ceil(seconds))
	}
}

func (c *completion) answerAudio(r upstream.Reply, secret string) *failure {
	c.heard, c.stream.kind = 0, nil
	kind := audioType(r.ContentType)
	switch {
	case kind[0] == streamType[0]:
		return c.relay(r, secret)
	case c.route == catalog.Transcriptions:
		return c.answer(r, secret)
	case kind[0] == jsonType[0]:
		return c.notStreamed(r, secret)
	}
	return c.relaySpeech(r, kind)
}

// rewriteTranscription meters a response, which needs no edits.
func (c *completion) rewriteTranscription(_ []jsonedit.Edit, answer gjson.Result, secret string) ([]jsonedit.Edit, *failure) {
	if answer.Get("error").IsObject() {
		return nil, errorInAnswer(answer, secret)
	}
	c.hear(answer)
	c.settle()
	return nil, nil
}

// audioType returns a Content-Type that browsers do not run.
func audioType(contentType string) []string {
	kind, _, _ := mime.ParseMediaType(contentType) // a type without valid parameters is returned too
	switch kind {
	case "application/json":
		return jsonType
	case "text/event-stream":
		return streamType
	case "text/plain", "text/vtt", "application/x-subrip":
		return []string{kind + "; charset=utf-8"}
	}
	if strings.HasPrefix(kind, "audio/") {
		return []string{kind}
	}
	return []string{"application/octet-stream"}
}

// relaySpeech forwards audio as it arrives. Another upstream may be tried only before the first bytes.
func (c *completion) relaySpeech(r upstream.Reply, kind []string) *failure {
	c.stream.kind = kind
	buffer := make([]byte, maxUnsent)
	for sent := 0; ; {
		r.Body.Allow(c.idle())
		n, err := r.Body.Read(buffer)
		if sent == 0 && n > 0 {
			c.firstToken = c.gateway.config.Now()
		}
		sent += n
		c.stream.out = append(c.stream.out, buffer[:n]...)
		if c.stream.send() != nil {
			return &failure{apiErr: upstreamFailed(), outcome: Abandoned}
		}
		if sent > maxSpeech {
			return failed(errAnswerTooLong)
		}
		if err == io.EOF && sent > 0 {
			c.settle()
			_ = c.finishStream(false) // fails if the client has disconnected
			return nil
		}
		if err == io.EOF {
			err = errNoAnswer
		}
		if err != nil {
			f := cutShort(err)
			f.tryNext = sent == 0 && f.outcome == Failed
			return f
		}
	}
}
