package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/service/gateway"
)

// BenchmarkChat is a whole chat of 2 KiB over a kept connection, with a model
// server that answers at once.
func BenchmarkChat(b *testing.B) {
	benchmarkChat(b, nil)
}

// BenchmarkChatWithoutBudgets and BenchmarkChatWithBudgets are BenchmarkChat of an account
// that has no budget where there could be some, and of one that has two.
func BenchmarkChatWithoutBudgets(b *testing.B) {
	store, machine := openBudgets(b, 1)
	must(b, store.Delete(b.Context(), audit.Operator(time.Now()), daily))
	k, _ := keep(b, store, machine, time.Now)
	benchmarkChat(b, k)
}

func BenchmarkChatWithBudgets(b *testing.B) {
	store, machine := openBudgets(b, 1e18)
	monthly := budget.ID{Account: daily.Account, Period: budget.Month, Unit: budget.Tokens}
	must(b, store.Set(b.Context(), audit.Operator(time.Now()), budget.Budget{ID: monthly, Limit: 1e18}))
	k, _ := keep(b, store, machine, time.Now)
	benchmarkChat(b, k)
}

func benchmarkChat(b *testing.B, budgets gateway.Budgets) {
	body := strings.Replace(plain, "one two", strings.Repeat("How are you today? ", 100), 1)
	benchmark(b, budgets, body, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(whole), whole))
}

// BenchmarkStream is a stream of 50 chunks that have all arrived.
func BenchmarkStream(b *testing.B) {
	chunks := make([]string, 0, 53)
	for range 50 {
		chunks = append(chunks, chunk("hello "))
	}
	text := eventStream(append(chunks, last, used, done)...)
	benchmark(b, nil, streamed,
		fmt.Sprintf(
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			len(text), text))
}

func benchmark(b *testing.B, budgets gateway.Budgets, body, answer string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					io.Copy(io.Discard, request.Body)
					if _, err := io.WriteString(conn, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	w := newWorld(b, setup{upstreams: []*modelServer{{url: "http://" + listener.Addr().String() + "/v1"}},
		rows: oneRowPriced, tier: credential.Tier{}, budgets: budgets})
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", studio, len(body), body)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		for pb.Next() {
			if _, err := io.WriteString(conn, request); err != nil {
				b.Error(err)
				return
			}
			response, err := http.ReadResponse(reader, nil)
			if err != nil || response.StatusCode != 200 {
				b.Error(err, response)
				return
			}
			io.Copy(io.Discard, response.Body)
		}
	})
}
