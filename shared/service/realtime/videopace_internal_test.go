package realtime

import (
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/credential"
)

func TestVideoIsDecodedAtLimitedSpeed(t *testing.T) {
	key := []byte("\x00\x00\x00\x9d\x01\x2a\x80\x07\x40\x04") // 1920x1088
	const seconds = 10
	for _, c := range []struct {
		name         string
		rate, decode int
		took         time.Duration
	}{
		{"a camera", 60, 600, 3 * time.Millisecond}, {"a flood", 400, 700, 0}, {"costly frames", 60, 320, 10 * time.Millisecond},
		{"a decoder that lies", 60, 3, time.Hour},
	} {
		p, now, decoded, gap := newVideoPace(), time.Now(), 0, false
		for i := range c.rate * seconds {
			frame := []byte("\x01\x00\x00")
			if i%c.rate == 0 {
				frame = key
			}
			at := now.Add(time.Duration(i) * time.Second / time.Duration(c.rate))
			admitted := p.admits(frame, at)
			if admitted {
				p.took(c.took, at)
			}
			if gap = gap && i%c.rate != 0; admitted {
				decoded++
			}
			if gap && admitted {
				t.Errorf("%s: frame %d was decoded after a dropped one", c.name, i)
			}
			gap = gap || !admitted
		}
		if decoded < c.decode*8/10 || decoded > c.decode {
			t.Errorf("%s: decoded %d frames, want %d", c.name, decoded, c.decode)
		}
	}
}

func TestAccountWithoutLimitOpensManyRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := credential.Principal{Key: credential.Key{Account: "studio"}}
		s := &Server{}
		c := &connection{server: s, admission: admission{who: who}}
		for range 500 {
			if _, err := s.enter(who); err != nil || !c.mayOpenRoom() || !c.mayJoin(true) {
				t.Fatal("a limit applies to an account without a limit")
			}
		}
		time.Sleep(roomTime)
	})
}

func TestAccountsOpenFewRoomsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 2
		c := &connection{server: &Server{}, admission: admission{who: credential.Principal{
			Key: credential.Key{Account: "studio"}, Tier: credential.Tier{RealtimeSessions: sessions},
		}}}
		for range 2 {
			opened, joined := 0, 0
			for range 100 {
				if c.mayOpenRoom() {
					opened++
				}
				c.mayJoin(false)
				if c.mayJoin(true) {
					joined++
				}
			}
			if opened != sessions+roomBurst || joined != sessions*sessionJoins+joinBurst {
				t.Errorf("opened %d rooms at once and joined %d times, want %d and %d", opened, joined,
					sessions+roomBurst, sessions*sessionJoins+joinBurst)
			}
			time.Sleep(roomTime)
			synctest.Wait()
		}
	})
}
