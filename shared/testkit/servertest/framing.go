package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// FramingAttack is a request whose end two readers might locate differently. It hides another
// request, GET /healthz, which would get 200.
type FramingAttack struct {
	Name    string
	Request string
	// Rejected means that the request must get exactly one response, with status 400 or above, and that the
	// connection is then closed. Otherwise the request is valid, and requests after it may also get responses.
	Rejected bool
}

// hidden is the smuggled request. after is a request that is deliberately sent after the attack.
const (
	hidden = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
	after  = "DELETE /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

// inChunks is a chunked body whose only chunk is the hidden request.
var inChunks = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)

// FramingAttacks returns attacks on a route that accepts a body and requires a key.
func FramingAttacks(path string) []FramingAttack {
	var all []FramingAttack
	add := func(rejected bool, name, fields, body string) {
		request := "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body
		all = append(all, FramingAttack{Name: name, Request: request, Rejected: rejected})
	}
	addLengths(add)
	addCodings(add)
	addBoth(add)
	addFields(add)
	addChunks(add)
	all = append(all,
		FramingAttack{"HTTP/1.0 in chunks", "POST " + path +
			" HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + inChunks, true},
		FramingAttack{"HTTP/1.0 with both", "POST " + path +
			" HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + inChunks, true},
		FramingAttack{"GET with both", "GET " + path +
			" HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, true},
		FramingAttack{"LF line ends, with both",
			"POST " + path + " HTTP/1.1\nHost: a\nContent-Length: 3\nTransfer-Encoding: chunked\n\n0\n\n" + hidden, true},
		FramingAttack{"both after a valid request", "DELETE /healthz HTTP/1.1\r\nHost: a\r\n\r\nPOST " + path +
			" HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, true},
		FramingAttack{"both after a valid body", "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}POST " +
			path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + hidden, true},
		FramingAttack{"both after valid chunks", "POST " + path +
			" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nPOST " + path +
			" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + hidden, true},
		FramingAttack{"an unknown version", "POST " + path + " HTTP/1.01\r\nHost: a\r\nContent-Length: 3\r\n\r\n{} " +
			hidden, true},
		FramingAttack{"HTTP/2 in the request line", "POST " + path + " HTTP/2.0\r\nHost: a\r\nContent-Length: 3\r\n\r\n{} " + hidden,
			true},
		FramingAttack{"a request line with a bare CR", "POST " + path + " HTTP/1.1\rX: y\r\nHost: a\r\n\r\n" + hidden, true},
		FramingAttack{"no version", "POST " + path + "\r\nHost: a\r\n\r\n" + hidden, true},
		FramingAttack{"two spaces in the line", "POST  " + path + " HTTP/1.1\r\nHost: a\r\n\r\n" + hidden, true},
		FramingAttack{"no host", "POST " + path + " HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" + hidden, true},
		FramingAttack{"two hosts", "POST " + path + " HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}" + hidden,
			true},
	)
	return all
}

type adding func(rejected bool, name, fields, body string)

func addLengths(add adding) {
	whole := fmt.Sprint(len(hidden))
	add(false, "a valid length", "Content-Length: "+whole+"\r\n", hidden+after)
	add(false, "the same length twice", "Content-Length: "+whole+"\r\nContent-Length: "+whole+"\r\n", hidden+after)
	add(false, "zeros before the length", "Content-Length: 000"+whole+"\r\n", hidden+after)
	add(false, "spaces around the length", "Content-Length: \t "+whole+" \t\r\n", hidden+after)
	for name, length := range map[string]string{
		"a list of lengths": whole + ", " + whole, "a list of two lengths": whole + ",2", "a signed length": "+" + whole,
		"a negative length":    "-1",
		"a hexadecimal length": "0x20", "a length with a point": whole + ".0", "a length with an exponent": "1e1",
		"an empty length": "",
		"a huge length":   "99999999999999999999", "a length that overflows": "18446744073709551617",
		"words as the length":   "two",
		"a length with a space": "1 2", "a length with an underscore": "1_0", "a length of other digits": "٣",
		"a quoted length":     `"2"`,
		"a length with a NUL": "2\x00", "a length with a bare CR": "2\r0", "a length with a form feed": "\f2",
	} {
		add(true, name, "Content-Length: "+length+"\r\n", hidden)
	}
	add(true, "two lengths", "Content-Length: 0\r\nContent-Length: "+whole+"\r\n", hidden)
	add(true, "two lengths in the other order", "Content-Length: "+whole+"\r\nContent-Length: 0\r\n", hidden)
	add(true, "two lengths in other cases", "content-length: 0\r\nCONTENT-LENGTH: "+whole+"\r\n", hidden)
	add(true, "one length with zeros and one without", "Content-Length: 02\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
		"{}"+hidden)
}

func addCodings(add adding) {
	add(false, "valid chunks", "Transfer-Encoding: chunked\r\n", inChunks+after)
	add(false, "chunks in capitals", "TRANSFER-ENCODING: CHUNKED\r\n", inChunks+after)
	for name, coding := range map[string]string{
		"an unknown coding": "gzip", "gzip and chunks": "gzip, chunked", "chunks and gzip": "chunked, gzip",
		"chunks twice in a list": "chunked, chunked",
		"identity":               "identity", "identity and chunks": "identity, chunked", "an empty coding": "",
		"chunks with a parameter":    "chunked;a=b",
		"chunks with a vertical tab": "\vchunked", "chunks with a form feed": "chunked\f", "quoted chunks": `"chunked"`,
		"chunks with a NUL":     "chunked\x00",
		"a comma before chunks": ",chunked", "a word like chunks": "xchunked", "chunks with a bare CR": "chun\rked",
		"a space within chunks": "chunk ed",
	} {
		add(true, name, "Transfer-Encoding: "+coding+"\r\n", inChunks)
	}
	add(true, "chunks in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", inChunks)
	add(true, "chunks and identity in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		inChunks)
}

func addBoth(add adding) {
	short, long := "Content-Length: 3\r\n", "Content-Length: 400\r\n"
	const chunks = "Transfer-Encoding: chunked\r\n"
	end := "0\r\n\r\n" + hidden
	add(true, "a length, and chunks", short+chunks, end)
	add(true, "chunks, and a length", chunks+short, end)
	add(true, "a long length, and chunks", long+chunks, end)
	add(true, "chunks, and a long length", chunks+long, end)
	add(true, "no length, and chunks", "Content-Length: 0\r\n"+chunks, end)
	add(true, "the right length, and chunks", fmt.Sprintf("Content-Length: %d\r\n", len(inChunks))+chunks, inChunks)
	add(true, "both, with fields between", short+"X-A: b\r\nX-C: d\r\n"+chunks, end)
	add(true, "both in small letters", "content-length: 3\r\ntransfer-encoding: chunked\r\n", end)
	add(true, "both in mixed letters", "cOnTeNt-LeNgTh: 3\r\ntRaNsFeR-eNcOdInG: chunked\r\n", end)
	add(true, "both without spaces", "Content-Length:3\r\nTransfer-Encoding:chunked\r\n", end)
	add(true, "both with tabs", "Content-Length:\t3\r\nTransfer-Encoding:\tchunked\r\n", end)
	add(true, "both, the length twice", short+short+chunks, end)
	add(true, "both, below many fields", strings.Repeat("X-Fill: "+strings.Repeat("y", 500)+"\r\n", 20)+short+chunks, end)
	add(true, "both, and an expectation", "Expect: 100-continue\r\n"+short+chunks, end)
	add(true, "both, and an upgrade", "Connection: Upgrade\r\nUpgrade: websocket\r\n"+short+chunks, end)
	add(true, "a length, and an unknown coding", short+"Transfer-Encoding: xchunked\r\n", end)
	add(true, "a length, and identity", short+"Transfer-Encoding: identity\r\n", end)
	add(true, "a malformed length, and chunks", "Content-Length: x\r\n"+chunks, end)
}

func addFields(add adding) {
	for name, field := range map[string]string{
		"a space before the colon of the length":  "Content-Length : 3\r\n",
		"a tab before the colon of the length":    "Content-Length\t: 3\r\n",
		"a space before the colon of the coding":  "Transfer-Encoding : chunked\r\n",
		"a space before the length":               "X-A: b\r\n Content-Length: 3\r\n",
		"a tab before the coding":                 "X-A: b\r\n\tTransfer-Encoding: chunked\r\n",
		"a length in the next line":               "Content-Length:\r\n 3\r\n",
		"a coding in the next line":               "Transfer-Encoding:\r\n chunked\r\n",
		"a coding continued in the next line":     "Transfer-Encoding: chunked,\r\n identity\r\n",
		"a value continued in the next line":      "X-A: b\r\n c\r\n",
		"a first field with a continuation":       " X-A: b\r\n",
		"a line without a colon":                  "Content-Length 3\r\n",
		"a line that is a colon":                  ": 3\r\n",
		"a NUL in a name":                         "Content-Length\x00: 3\r\n",
		"a name of other letters":                 "Content-Ļength: 3\r\n",
		"a quote in a name":                       "\"Content-Length\": 3\r\n",
		"a value with a NUL":                      "X-A: b\x00c\r\n",
		"a value with a bare CR, and a length":    "X-A: b\rContent-Length: 3\r\n",
		"a value with a bare CR, and a coding":    "X-A: b\rTransfer-Encoding: chunked\r\n",
		"a space within a name":                   "Content Length: 3\r\n",
		"a name with a vertical tab":              "\vContent-Length: 3\r\n",
		"a line of a CR":                          "\r\r\n",
		"a header's end by two CRs and both next": "X-A: b\r\r\nContent-Length: 3\r\n",
	} {
		add(true, name, field, "{} "+hidden)
	}
	// Names that merely resemble framing headers have no effect.
	add(false, "an underscore in the name of the length", "Content_Length: 400\r\n", after)
	add(false, "an underscore in the name of the coding", "Transfer_Encoding: chunked\r\n", after)
	add(false, "a length in a longer name", "X-Content-Length: 400\r\n", after)
}

func addChunks(add adding) {
	const chunks = "Transfer-Encoding: chunked\r\n"
	size := fmt.Sprintf("%x", len(hidden))
	add(false, "a chunk with an extension", chunks, size+";a=b\r\n"+hidden+"\r\n0\r\n\r\n"+after)
	add(false, "a chunk with a quoted extension", chunks, size+";a=\"b;c\"\r\n"+hidden+"\r\n0;d\r\n\r\n"+after)
	add(false, "a chunk's size with zeros", chunks, "000"+size+"\r\n"+hidden+"\r\n000\r\n\r\n"+after)
	add(false, "a chunk's size in capitals", chunks, strings.ToUpper(size)+"\r\n"+hidden+"\r\n0\r\n\r\n"+after)
	add(false, "a trailer", chunks, size+"\r\n"+hidden+"\r\n0\r\nX-A: b\r\n\r\n"+after)
	for name, body := range map[string]string{
		"a malformed chunk size":              "x\r\n" + hidden,
		"a chunk's size in hexadecimal twice": "0x2\r\n{}\r\n0\r\n\r\n" + hidden,
		"a signed chunk":                      "+2\r\n{}\r\n0\r\n\r\n" + hidden,
		"a negative chunk":                    "-2\r\n{}\r\n0\r\n\r\n" + hidden,
		"a space before a chunk's size":       " 2\r\n{}\r\n0\r\n\r\n" + hidden,
		"an underscore in a chunk's size":     "1_0\r\n{}\r\n0\r\n\r\n" + hidden,
		"a huge chunk size":                   "fffffffffffffffff\r\n{}\r\n0\r\n\r\n" + hidden,
		"a chunk's size that overflows":       "10000000000000002\r\n{}\r\n0\r\n\r\n" + hidden,
		"an empty chunk's size":               "\r\n{}\r\n0\r\n\r\n" + hidden,
		"an extension without a size":         ";a=b\r\n{}\r\n0\r\n\r\n" + hidden,
		"a chunk longer than its size":        "2\r\n{}  \r\n0\r\n\r\n" + hidden,
		"a chunk without its end":             "2\r\n{}0\r\n\r\n" + hidden,
		"a chunk whose end is LF":             "2\r\n{}\n0\r\n\r\n" + hidden,
		"a chunk whose end is CR":             "2\r\n{}\r0\r\n\r\n" + hidden,
		"a chunk's size that ends with LF":    "2\n{}\r\n0\r\n\r\n" + hidden,
		"a chunk's size that ends with CR":    "2\r{}\r\n0\r\n\r\n" + hidden,
		"an extension with LF":                "2;a\n{}\r\n0\r\n\r\n" + hidden,
		"an extension with a bare CR":         "2;a\rb\r\n{}\r\n0\r\n\r\n" + hidden,
		"a length in the trailer":             "0\r\nContent-Length: 400\r\n\r\n" + after,
		"a coding in the trailer":             "0\r\nTransfer-Encoding: chunked\r\n\r\n" + after,
		"a trailer with a continuation":       "0\r\nX-A: b\r\n c\r\n\r\n" + after,
		"a trailer without a colon":           "0\r\nGET /healthz HTTP/1.1\r\n\r\n" + hidden,
		"a host in the trailer":               "0\r\nHost: b\r\n\r\n" + after,
	} {
		add(false, name, chunks, body)
	}
}

// Try sends an attack to a server and returns an error if the responses are wrong. piece is the number of bytes sent
// at a time. If it is 0, everything is sent at once.
func (a FramingAttack) Try(ctx context.Context, address string, piece int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	for rest := a.Request; rest != ""; {
		n := len(rest)
		if piece > 0 {
			n = min(n, piece)
		}
		if _, err := io.WriteString(conn, rest[:n]); err != nil {
			break // rejected before everything was sent
		}
		rest = rest[n:]
	}
	// The end of input makes a server stop waiting for the rest of a request.
	_ = conn.(*net.TCPConn).CloseWrite()
	statuses, err := answers(bufio.NewReader(conn))
	if err != nil {
		return fmt.Errorf("after the responses %v: %w", statuses, err)
	}
	for i, status := range statuses {
		if status == http.StatusOK {
			return fmt.Errorf("the hidden request got a response: %v", statuses)
		}
		if a.Rejected && status >= 400 && i < len(statuses)-1 && !strings.Contains(a.Name, "after") {
			return fmt.Errorf("got %v, want one response and a closed connection", statuses)
		}
	}
	if a.Rejected && (len(statuses) == 0 || statuses[len(statuses)-1] < 400) || len(statuses) > 2 {
		return fmt.Errorf("got responses %v", statuses)
	}
	return nil
}

func answers(from *bufio.Reader) (statuses []int, err error) {
	for {
		response, err := http.ReadResponse(from, nil)
		if len(statuses) > 0 && errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return statuses, nil
		}
		if err != nil {
			return statuses, err
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		statuses = append(statuses, response.StatusCode)
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return statuses, err
		}
	}
}
