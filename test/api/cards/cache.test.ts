import { expect, it } from 'vitest'
import { createCardCache } from '../../../src/cards/cache.ts'
import {
  CLIENT,
  makeItem,
  serveCards,
  startCards,
  writeDetail,
  writeList,
} from '../../support/cards.ts'
import { KEY } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

it('kept answers are shown again, for the same question only', async () => {
  const gateway = await serveCards((response, { path }) =>
    response.end(path.includes('VC-') ? writeDetail() : writeList([makeItem()])),
  )
  const { get } = await startCards(database, gateway.url, { ...CLIENT, CARDS_CACHE_MS: '600000' })
  const ask = async () => {
    for (const path of ['/VC-1', '/VC-2', '', '?status=A', '?status=B&cardBrand=visa']) {
      expect((await get(path)).status).toBe(200)
    }
    expect((await get('/VC-1', KEY, { 'accept-language': 'vi' })).status).toBe(200)
  }
  await ask()
  expect(gateway.reads).toHaveLength(6)
  await ask()
  await get('?cardBrand=visa&status=B')
  expect(gateway.reads).toHaveLength(6)
})

it('without CARDS_CACHE_MS every question is asked, but equal ones of one moment once', async () => {
  const held: (() => void)[] = []
  const gateway = await serveCards((response) => held.push(() => response.end(writeDetail())))
  const { get, questions } = await startCards(database, gateway.url)
  const asked = Array.from({ length: 6 }, () => get('/VC-1'))
  await waitUntil(() => questions() === 6 && held.length === 1, { what: 'six callers, one read' })
  held.splice(0)[0]?.()
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
  const again = get('/VC-1')
  await waitUntil(() => held.length === 1, { what: 'a new read' })
  held[0]?.()
  expect((await again).status).toBe(200)
  expect(gateway.reads).toHaveLength(2)
})

it('a caller that goes away does not take the answer from the others', async () => {
  const held: (() => void)[] = []
  const gateway = await serveCards((response) => held.push(() => response.end(writeDetail())))
  const { get, service, questions } = await startCards(database, gateway.url)
  const gone = new AbortController()
  const first = fetch(`${service.url}/v2/vc/virtual-cards/VC-1`, {
    headers: { authorization: `Bearer ${KEY}` },
    signal: gone.signal,
  }).catch(() => 'gone')
  await waitUntil(() => held.length === 1, { what: 'the read' })
  const second = get('/VC-1')
  await waitUntil(() => questions() === 2, { what: 'the other caller' })
  gone.abort()
  expect(await first).toBe('gone')
  held[0]?.()
  expect((await second).status).toBe(200)
  expect(gateway.reads).toHaveLength(1)
})

it('a failure is not kept', async () => {
  const gateway = await serveCards((response, _, nth) =>
    nth === 1 ? response.writeHead(500).end() : response.end(writeDetail()),
  )
  const { get } = await startCards(database, gateway.url, { ...CLIENT, CARDS_CACHE_MS: '600000' })
  expect([(await get('/VC-1')).status, (await get('/VC-1')).status]).toEqual([502, 200])
})

it('an answer is as old as its question, and gone when it is too old', async () => {
  let ms = 0
  const cache = createCardCache(100, { now: () => ms })
  const ask = (answer: string) => cache.get('key', () => Promise.resolve(answer))
  const slow = cache.get('key', async () => {
    ms = 40
    return 'first'
  })
  expect(await slow).toBe('first')
  ms = 99
  expect(await ask('second')).toBe('first')
  ms = 100
  expect(await ask('second')).toBe('second')
})

it('what is kept is bounded: the oldest makes room, and what is too large is not kept', async () => {
  const asked: string[] = []
  const cache = createCardCache(1_000, { maxSize: 30, now: () => 0 })
  const get = (key: string, size = 9) =>
    cache.get(key, () => {
      asked.push(key)
      return Promise.resolve('x'.repeat(size))
    })
  for (const key of ['a', 'b', 'c', 'a', 'd', 'b', 'c', 'd', 'a']) await get(key)
  expect(asked).toEqual(['a', 'b', 'c', 'd', 'a'])
  await get('e', 100)
  await get('e', 100)
  for (const key of ['c', 'd', 'a']) await get(key)
  expect(asked.slice(5)).toEqual(['e', 'e'])
})
