package output

import "iter"

// indexSet holds arrival indexes. They come nearly in order and nearly all of
// them, so that full pages need no memory.
type indexSet struct {
	pages map[uint64]*indexPage
	next  uint64 // after the greatest
}

const (
	pageBits = 16
	pageSize = 1 << pageBits
)

type indexPage struct {
	bits  [pageSize / 64]uint64
	count int
}

// fullPage stands for every page that has all its indexes.
var fullPage = &indexPage{count: pageSize}

func (s *indexSet) add(i uint64) {
	s.next = max(s.next, i+1)
	if s.pages == nil {
		s.pages = map[uint64]*indexPage{}
	}
	p := s.pages[i>>pageBits]
	if p == nil {
		p = &indexPage{}
		s.pages[i>>pageBits] = p
	}
	if p == fullPage {
		return
	}
	word, bit := &p.bits[i%pageSize/64], uint64(1)<<(i%64)
	if *word&bit == 0 {
		*word |= bit
		p.count++
	}
	if p.count == pageSize {
		s.pages[i>>pageBits] = fullPage
	}
}

func (s *indexSet) has(i uint64) bool {
	p := s.pages[i>>pageBits]
	return p == fullPage || p != nil && p.bits[i%pageSize/64]>>(i%64)&1 != 0
}

// missing returns the indexes below n that are not in the set.
func (s *indexSet) missing(n uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := uint64(0); i < n; i++ {
			if s.pages[i>>pageBits] == fullPage {
				i |= pageSize - 1
				continue
			}
			if !s.has(i) && !yield(i) {
				return
			}
		}
	}
}
