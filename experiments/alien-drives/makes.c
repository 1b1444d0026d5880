/* The list of makes. */
#include "alien.h"

extern const make SLC_FIXED, MAP_CACHE, COARSE, DISK, VOLUME, CARD, RAID;
extern const make SLC_DYNAMIC, HASHED, THROTTLE, COMPRESS, SET_ASSOCIATIVE, PHASE_CHANGE, RAM_DISK;
extern const make *const MAKES[];
extern const int MAKES_COUNT;

const make *const MAKES[] = {
    &SLC_FIXED, &MAP_CACHE, &COARSE, &DISK, &VOLUME, &CARD, &RAID,
    &SLC_DYNAMIC, &HASHED, &THROTTLE, &COMPRESS, &SET_ASSOCIATIVE, &PHASE_CHANGE, &RAM_DISK,
};
const int MAKES_COUNT = sizeof MAKES / sizeof *MAKES;
