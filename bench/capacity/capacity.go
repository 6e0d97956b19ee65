// Package capacity computes the units that DynamoDB counts for a call (DynamoDB Developer
// Guide, "DynamoDB item sizes and formats").
package capacity

import (
	"math"
	"strings"
)

// Number returns the size of a number in bytes: one for each two significant digits, and
// one or two more.
func Number(number string) int {
	digits := strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, number), "0")
	size := (len(digits)+1)/2 + 1
	if strings.HasPrefix(number, "-") {
		size++
	}
	return size
}

// Reads returns the read units of a read of so many bytes.
func Reads(bytes int, consistent bool) float64 {
	units := math.Max(1, math.Ceil(float64(bytes)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// Writes returns the write units of a write of so many bytes: the larger of what the item
// was and is.
func Writes(bytes int) float64 { return math.Max(1, math.Ceil(float64(bytes)/1024)) }
