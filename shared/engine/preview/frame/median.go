package frame

// median replaces each pixel by the median of the surrounding square (Huang's sliding histogram,
// 1979). Border pixels are repeated outward. The planes must not overlap.
func median(to, from []uint8, width, height, radius int) {
	rows := make([][]uint8, 2*radius+1)
	half := int32((2*radius + 1) * (2*radius + 1) / 2)
	for y := range height {
		for i := range rows {
			rows[i] = from[min(max(y+i-radius, 0), height-1)*width:][:width]
		}
		var counts [256]int32
		for _, row := range rows {
			counts[row[0]] += int32(radius)
			for x := 0; x <= radius; x++ {
				counts[row[min(x, width-1)]]++
			}
		}
		// below is the number of values that are less than level.
		level, below := 0, int32(0)
		out := to[y*width:][:width]
		for x := range out {
			for below > half {
				level--
				below -= counts[level]
			}
			for below+counts[level] <= half {
				below += counts[level]
				level++
			}
			out[x] = uint8(level)
			gone, in := max(x-radius, 0), min(x+radius+1, width-1)
			for _, row := range rows {
				old, new := int(row[gone]), int(row[in])
				counts[old]--
				counts[new]++
				if old < level {
					below--
				}
				if new < level {
					below++
				}
			}
		}
	}
}
