import { describe, expect, it } from 'vitest'
import { drawPoints, listPoints, mayDraw, readDraw } from './points.ts'

const statements = Array.from({ length: 20 }, (_, n) => `store: insert refunds (${n})`)
const points = listPoints(statements, true, 'connection lost')
const names = (of: readonly { name: string }[]) => of.map(({ name }) => name)
const drawFifth = (commit: string) =>
  drawPoints(points, 'first send', readDraw(undefined, true, commit))

describe('the points', () => {
  it('are both sides of every statement, and every cut of the call', () => {
    expect(points).toHaveLength(2 * 20 + 9)
    expect(new Set(names(points)).size).toBe(points.length)
    expect(listPoints(statements, false, 'kill -9')).toHaveLength(2 * 20)
    const cuts = names(listPoints([], true, 'kill -9'))
    expect(cuts).not.toContain('REFUND, before the connection')
  })

  it('are all played by hand', () => {
    expect(drawPoints(points, 'first send', readDraw(undefined, false, 'a'))).toEqual(points)
    expect(drawPoints(points, 'first send', readDraw('all', true, 'a'))).toEqual(points)
  })

  it('are drawn by the commit in CI: a fifth, the same ones each time, others for the next commit', () => {
    expect(drawFifth('a')).toHaveLength(Math.ceil(points.length / 5))
    expect(drawFifth('a')).toEqual(drawFifth('a'))
    expect(drawFifth('b')).not.toEqual(drawFifth('a'))
    const drawn = Array.from({ length: 50 }, (_, n) => names(drawFifth(`commit ${n}`)))
    expect(new Set(drawn.flat()).size).toBe(points.length)
  })

  it('can be chosen by the beginning of their name', () => {
    const draw = readDraw('first send: store: insert refunds (7), after', true, 'a')
    expect(names(drawPoints(points, 'first send', draw))).toEqual([
      'store: insert refunds (7), after',
    ])
    expect(mayDraw('first send', draw)).toBe(true)
    expect(mayDraw('first', readDraw('first send', false, 'a'))).toBe(false)
    expect(mayDraw('first send', readDraw('first', false, 'a'))).toBe(true)
  })
})
