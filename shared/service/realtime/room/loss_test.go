package room

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"cutroom/shared/service/realtime/livekit"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/lossytest"
)

func behind(t *testing.T, faults lossytest.Faults) (*world, *lossytest.Conn) {
	t.Helper()
	var network *lossytest.Conn
	w := newWorld(t, func(conn net.PacketConn) net.PacketConn {
		network = lossytest.NewConn(conn, 1)
		network.Set(faults, faults)
		return network
	})
	return w, network
}

func numberIn(frame []byte) int { return int(binary.BigEndian.Uint32(frame[10:])) }

func TestReportPaddingIsNotLoss(t *testing.T) {
	symbols := make([]uint16, 14)
	for i := range 9 {
		symbols[i] = rtcp.TypeTCCPacketReceivedSmallDelta
	}
	report := &rtcp.TransportLayerCC{PacketStatusCount: 30, PacketChunks: []rtcp.PacketStatusChunk{
		&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 20},
		&rtcp.StatusVectorChunk{SymbolList: symbols}, &rtcp.RunLengthChunk{RunLength: 7},
	}}
	trim(report)
	run, list, rest := report.PacketChunks[0].(*rtcp.RunLengthChunk), report.PacketChunks[1].(*rtcp.StatusVectorChunk),
		report.PacketChunks[2].(*rtcp.RunLengthChunk)
	if run.RunLength != 20 || len(list.SymbolList) != 10 || rest.RunLength != 0 {
		t.Errorf("the report covers %d, %d and %d packets, want 20, 10 and none", run.RunLength, len(list.SymbolList),
			rest.RunLength)
	}
}

func TestMediaSurvivesLossyNetwork(t *testing.T) {
	w, _ := behind(t, lossytest.Faults{Drop: 0.02, Duplicate: 0.02, Reorder: 0.02})
	r, _ := w.mirror()
	c := w.join(r, livekit.Version1, true)
	first, last, seen := 0, 0, 0
	for last < first+150 {
		select {
		case frame := <-c.Seen:
			number := numberIn(frame)
			if number <= last {
				t.Fatalf("frame %d arrives after %d", number, last)
			}
			if first == 0 {
				first = number
			}
			last = number
			seen++
		case <-time.After(await.Max):
			t.Fatalf("no frame arrived after %d", last)
		}
	}
	if seen < (last-first)/2 {
		t.Errorf("%d of %d frames were returned", seen, last-first)
	}
}

func TestBlockedUDPFallsBackToTCP(t *testing.T) {
	w, _ := behind(t, lossytest.Faults{Block: true})
	r, _ := w.mirror()
	w.join(r, livekit.Version1, true, webrtc.NetworkTypeUDP4, webrtc.NetworkTypeTCP4).Sees(20)
}

func TestMediaSurvivesNetworkOutage(t *testing.T) {
	w, network := behind(t, lossytest.Faults{})
	r, heard := w.mirror()
	c := w.join(r, livekit.Version1, true)
	c.Sees(10)
	network.Set(lossytest.Faults{Block: true}, lossytest.Faults{Block: true})
	before := int64(-1)
	for before != heard.Load() {
		before = heard.Load()
		time.Sleep(300 * time.Millisecond)
	}
	sent := int(c.Sent.Load())
	network.Set(lossytest.Faults{}, lossytest.Faults{})
	for {
		select {
		case frame := <-c.Seen:
			if numberIn(frame) > sent {
				return
			}
		case <-time.After(await.Max):
			t.Fatal("no frame arrived after the network was restored")
		}
	}
}
