package livekit

import (
	"encoding/binary"
	"hash/crc32"
)

// gunzip decompresses gzip content (RFC 1952) up to most bytes. ok is false if it is longer or malformed.
//
// The standard library allocates up to 38 kB for a block of 40 bytes. gunzip allocates only its result.
func gunzip(compressed []byte, most int) (content []byte, ok bool) {
	const header, trailer = 10, 8
	if len(compressed) < header+trailer || string(compressed[:3]) != "\x1f\x8b\x08" || compressed[3] != 0 {
		return nil, false // clients do not send optional fields
	}
	sum, size := compressed[len(compressed)-trailer:], binary.LittleEndian.Uint32(compressed[len(compressed)-4:])
	if int64(size) > int64(most) {
		return nil, false
	}
	i := inflater{in: compressed[header : len(compressed)-trailer], out: make([]byte, 0, size)}
	if !i.inflate() || len(i.out) != int(size) || crc32.ChecksumIEEE(i.out) != binary.LittleEndian.Uint32(sum) {
		return nil, false
	}
	return i.out, true
}

// inflater decompresses DEFLATE content (RFC 1951) up to the capacity of out.
type inflater struct {
	in, out []byte
	// bits holds the unused bits taken from in; the next bit is the lowest.
	bits  uint32
	count uint
	// broken is true if in is truncated or contains an unknown code.
	broken            bool
	literals, offsets huffman
}

const (
	maxBits = 15
	// maxLiterals and maxOffsets are the numbers of symbols of the two codes.
	maxLiterals, maxOffsets = 288, 30
	// endOfBlock is the symbol that ends a block. Higher symbols are lengths.
	endOfBlock = 256
)

// lengthCode and offsetCode return the base value of a symbol and the number of extra bits (RFC 1951,
// section 3.2.5).
func lengthCode(symbol int) (base int, extra uint) {
	switch symbol -= endOfBlock + 1; {
	case symbol < 8:
		return 3 + symbol, 0
	case symbol == 28:
		return 258, 0
	}
	extra = uint(symbol/4 - 1)
	return 3 + (4+symbol%4)<<extra, extra
}

func offsetCode(symbol int) (base int, extra uint) {
	if symbol < 4 {
		return 1 + symbol, 0
	}
	extra = uint(symbol/2 - 1)
	return 1 + (2+symbol%2)<<extra, extra
}

// take takes at most 16 bits.
func (i *inflater) take(count uint) int {
	for i.count < count {
		if len(i.in) == 0 {
			i.broken = true
			return 0
		}
		i.bits |= uint32(i.in[0]) << i.count
		i.in, i.count = i.in[1:], i.count+8
	}
	value := i.bits & (1<<count - 1)
	i.bits, i.count = i.bits>>count, i.count-count
	return int(value)
}

// inflate decompresses all blocks. It returns false for malformed blocks or trailing bytes.
func (i *inflater) inflate() bool {
	for last := false; !last && !i.broken; {
		last = i.take(1) == 1
		switch i.take(2) {
		case 0:
			i.stored()
		case 1:
			i.setFixed()
			i.block()
		case 2:
			i.setDynamic()
			i.block()
		default:
			i.broken = true
		}
	}
	return !i.broken && len(i.in) == 0
}

// stored copies an uncompressed block.
func (i *inflater) stored() {
	i.bits, i.count = 0, 0
	length := i.take(16)
	if i.take(16) != length^0xffff || length > len(i.in) || length > cap(i.out)-len(i.out) {
		i.broken = true
		return
	}
	i.out, i.in = append(i.out, i.in[:length]...), i.in[length:]
}

// block decompresses a block with the current codes.
func (i *inflater) block() {
	for !i.broken {
		symbol := i.symbol(&i.literals)
		switch {
		case i.broken || symbol == endOfBlock:
			return
		case symbol < endOfBlock && len(i.out) < cap(i.out):
			i.out = append(i.out, byte(symbol))
		case symbol > endOfBlock && symbol < maxLiterals-2:
			i.repeat(symbol)
		default:
			i.broken = true
		}
	}
}

// repeat copies earlier bytes of the content.
func (i *inflater) repeat(symbol int) {
	base, extra := lengthCode(symbol)
	length := base + i.take(extra)
	symbol = i.symbol(&i.offsets)
	if symbol >= maxOffsets {
		i.broken = true
		return
	}
	base, extra = offsetCode(symbol)
	offset := base + i.take(extra)
	if i.broken || offset > len(i.out) || length > cap(i.out)-len(i.out) {
		i.broken = true
		return
	}
	for range length { // the loop may repeat bytes that it has just appended
		i.out = append(i.out, i.out[len(i.out)-offset])
	}
}

func (i *inflater) setFixed() {
	var lengths [maxLiterals]byte
	for symbol := range lengths {
		lengths[symbol] = 8
		switch {
		case symbol >= 280:
		case symbol >= 256:
			lengths[symbol] = 7
		case symbol >= 144:
			lengths[symbol] = 9
		}
	}
	i.literals.set(lengths[:])
	for symbol := range maxOffsets {
		lengths[symbol] = 5
	}
	i.offsets.set(lengths[:maxOffsets])
}

// setDynamic reads the codes of a block. A third code encodes their lengths.
func (i *inflater) setDynamic() {
	literals, offsets, count := i.take(5)+257, i.take(5)+1, i.take(4)+4
	if literals > maxLiterals-2 || offsets > maxOffsets {
		i.broken = true
		return
	}
	var lengths [maxLiterals + maxOffsets]byte
	for _, symbol := range []byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}[:count] {
		lengths[symbol] = byte(i.take(3))
	}
	if !i.literals.set(lengths[:19]) {
		i.broken = true
		return
	}
	clear(lengths[:])
	for at := 0; at < literals+offsets && !i.broken; {
		length, times := i.symbol(&i.literals), 1
		switch length {
		case 16:
			if at == 0 {
				i.broken = true
				return
			}
			length, times = int(lengths[at-1]), 3+i.take(2)
		case 17:
			length, times = 0, 3+i.take(3)
		case 18:
			length, times = 0, 11+i.take(7)
		}
		if at+times > literals+offsets {
			i.broken = true
			return
		}
		for range times {
			lengths[at] = byte(length)
			at++
		}
	}
	if !i.literals.set(lengths[:literals]) || !i.offsets.set(lengths[literals:literals+offsets]) {
		i.broken = true
	}
}

// huffman is a canonical Huffman code: the number of symbols by length, and the symbols in the
// order of their codes.
type huffman struct {
	counts  [maxBits + 1]int
	symbols [maxLiterals]uint16
}

// set builds the code from the code lengths of the symbols; 0 means that a symbol is not used. It returns
// false if the lengths are inconsistent.
func (h *huffman) set(lengths []byte) bool {
	h.counts = [maxBits + 1]int{}
	for _, length := range lengths {
		h.counts[length]++
	}
	h.counts[0] = 0
	var next [maxBits + 2]int
	left := 1
	for length := 1; length <= maxBits; length++ {
		if left = left<<1 - h.counts[length]; left < 0 {
			return false
		}
		next[length+1] = next[length] + h.counts[length]
	}
	for symbol, length := range lengths {
		if length > 0 {
			h.symbols[next[length]] = uint16(symbol)
			next[length]++
		}
	}
	return true
}

func (i *inflater) symbol(h *huffman) int {
	code, first, index := 0, 0, 0
	for length := 1; length <= maxBits; length++ {
		code |= i.take(1)
		if at := code - first; at < h.counts[length] {
			if i.broken {
				return 0
			}
			return int(h.symbols[index+at])
		}
		index += h.counts[length]
		first = (first + h.counts[length]) << 1
		code <<= 1
	}
	i.broken = true
	return 0
}
