import { describe, expect, it } from 'vitest'
import { describeZone, formatClock, toRange } from '../../../src/console/view.ts'

describe('the days of a zone', () => {
  it.each([
    ['UTC', '2026-11-22', '2026-11-22T00:00:00.000Z', '2026-11-23T00:00:00.000Z'],
    ['Asia/Ho_Chi_Minh', '2026-11-22', '2026-11-21T17:00:00.000Z', '2026-11-22T17:00:00.000Z'],
    ['America/New_York', '2026-03-08', '2026-03-08T05:00:00.000Z', '2026-03-09T04:00:00.000Z'],
    ['America/New_York', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
    // Clocks that are put forward at midnight have no 0:00, and those put back have it twice.
    ['America/Santiago', '2026-09-06', '2026-09-06T04:00:00.000Z', '2026-09-07T03:00:00.000Z'],
    ['America/Havana', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
    // One that had no such day.
    ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z', '2011-12-30T10:00:00.000Z'],
    // As far as times can be asked for.
    ['Asia/Ho_Chi_Minh', '0001-01-01', '0001-01-01T00:00:00.000Z', '0001-01-01T16:53:30.000Z'],
    ['America/New_York', '9999-12-30', '9999-12-30T05:00:00.000Z', '9999-12-31T05:00:00.000Z'],
  ])('%s, %s', (zone, day, from, to) => {
    expect(toRange(zone, { from: day, to: day })).toEqual({ from, to })
  })

  it('are left out where they were not entered', () => {
    expect(toRange('UTC', {})).toEqual({})
  })

  it('show a time as their clocks did', () => {
    const iso = '2026-11-22T17:00:00.123Z'
    expect(formatClock('Asia/Ho_Chi_Minh', iso)).toBe('2026-11-23 00:00:00')
    expect(formatClock('UTC', iso)).toBe('2026-11-22 17:00:00')
    expect(describeZone('Asia/Ho_Chi_Minh', Date.parse(iso))).toBe('GMT+7')
    expect(describeZone('UTC', Date.parse(iso))).toBe('UTC')
  })
})
