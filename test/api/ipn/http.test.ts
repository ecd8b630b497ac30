import { type ClientRequest, request as httpRequest } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { borrowRig } from '../../support/borrow-rig.ts'
import { countRows } from '../../support/database.ts'
import { postIpn, signIpn, toForm } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const LIMIT = 64 * 1024
const BODY_TIMEOUT_MS = 100
const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }

const rig = useRig()

const isStored = async (id: string) => {
  const rows = await rig.database.sql`select 1 from ipn_events where transaction_id = ${id}`
  return rows.length === 1
}

/** A notification of exactly so many bytes. */
const makeBody = (id: string, bytes: number) =>
  JSON.stringify(signIpn({ svc_TransactionID: id })).padEnd(bytes)

/** A request whose body `write` sends; without a length it is sent in chunks. */
async function post(
  write: (request: ClientRequest) => void,
  headers: Record<string, string> = {},
  { service } = rig,
) {
  return new Promise<{ status: number | undefined; connection: unknown; answer: unknown }>(
    (resolve, reject) => {
      const request = httpRequest(`${service.url}/ipn`, {
        method: 'POST',
        headers: { ...JSON_TYPE, ...headers },
        agent: false,
      })
      request.on('error', reject).on('response', (response) => {
        const { statusCode: status, headers } = response
        json(response).then((answer) => {
          resolve({ status, connection: headers.connection, answer })
          request.destroy()
        }, reject)
      })
      write(request)
    },
  )
}

describe('methods', () => {
  it.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET', 'HEAD'])(
    '%s is 405 with Allow: POST',
    async (method) => {
      const body = /GET|HEAD/.test(method) ? {} : { body: makeBody('T-METHOD', 0) }
      const response = await fetch(`${rig.service.url}/ipn`, {
        method,
        headers: JSON_TYPE,
        ...body,
      })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('POST')
      if (method === 'HEAD') return
      expect(await response.json()).toEqual({ respcode: 1, respmsg: 'use POST' })
    },
  )

  it('a well-signed GET stores nothing unless it is switched on', async () => {
    const query = toForm(signIpn({ svc_TransactionID: 'T-GET-OFF' }))
    expect((await fetch(`${rig.service.url}/ipn?${query}`)).status).toBe(405)
    expect(await isStored('T-GET-OFF')).toBe(false)
  })

  it('switched on, GET takes the query string, and HEAD and PUT are still refused', async () => {
    const other = await borrowRig({ settings: { IPN_ACCEPT_GET: 'true' } })
    try {
      const url = `${other.service.url}/ipn`
      const query = toForm(signIpn({ svc_TransactionID: 'T GET', svc_OrderInfo: 'đơn 1+1 & "2"' }))
      const response = await fetch(`${url}?${query}`)
      expect([response.status, await response.json()]).toEqual([200, RECEIVED.answer])
      const rows = await other.database.sql`select transaction_id as id, body from ipn_events`
      expect([...rows]).toEqual([{ id: 'T GET', body: query }])
      expect((await fetch(url)).status).toBe(400)
      const many = Array.from({ length: 65 }, (_, n) => `a${n}=`).join('&')
      expect((await fetch(`${url}?${query}&${many}`)).status).toBe(400)
      expect((await fetch(`${url}?${query.replace('1%2B1', '1%2B2')}`)).status).toBe(401)
      for (const method of ['HEAD', 'PUT']) {
        const refused = await fetch(`${url}?${query}`, { method })
        expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST, GET'])
      }
      const plain = toForm(signIpn({ svc_TransactionID: 'T-HOST' }))
      const host = await new Promise((resolve, reject) => {
        httpRequest(`${url}?${plain}`, { headers: { host: 'shop.1' } }, (answer) =>
          resolve(json(answer)),
        )
          .on('error', reject)
          .end()
      })
      expect(host).toEqual(RECEIVED.answer)
      expect((await countRows(other.database)).ipn_events).toBe(2)
    } finally {
      await other.stop()
    }
  })
})

describe('formats', () => {
  it.each([
    ['application/json; charset=utf-8', 'T-CHARSET'],
    ['APPLICATION/JSON', 'T-CAPITALS'],
    ['application/vnd.gateway+json', 'T-SUFFIX'],
  ])('%s is JSON', async (type, id) => {
    const body = signIpn({ svc_TransactionID: id })
    expect(await postIpn(rig.service.url, body, { 'content-type': type })).toEqual(RECEIVED)
    expect(await isStored(id)).toBe(true)
  })

  it('a form is accepted as well, signed over its decoded text', async () => {
    const fields = { svc_TransactionID: 'T-FORM', svc_OrderInfo: 'đơn hàng 1+1 = 100%', svc_Fee: 0 }
    const form = toForm(signIpn(fields))
    expect(await postIpn(rig.service.url, form, FORM_TYPE)).toEqual(RECEIVED)
    const type = { 'content-type': `${FORM_TYPE['content-type']};charset=UTF-8` }
    expect(await postIpn(rig.service.url, form, type)).toEqual(RECEIVED)
    const bare = form.replace('100%25', '100%')
    expect(await postIpn(rig.service.url, bare, FORM_TYPE)).toEqual(RECEIVED)
    expect((await rig.transaction('T-FORM')).ipnCount).toBe(3)
  })
})

describe('size', () => {
  it.each(['with a length', 'in chunks'])('exactly 64 KiB %s are accepted', async (how) => {
    const body = makeBody(`T-FULL ${how}`, LIMIT)
    const answer = await post(
      (request) => request.write(body, () => request.end()),
      how === 'with a length' ? { 'content-length': String(LIMIT) } : {},
    )
    expect(answer).toMatchObject(RECEIVED)
    expect(await isStored(`T-FULL ${how}`)).toBe(true)
  })

  it.each([
    ['one byte more, with a length', LIMIT + 1, true],
    ['one byte more, in chunks', LIMIT + 1, false],
    ['8 MiB, with a length', 8 * 1024 * 1024, true],
    ['8 MiB, in chunks', 8 * 1024 * 1024, false],
  ])('%s is 413 and not stored', async (how, bytes, hasLength) => {
    const answer = await post(
      (request) => request.write(makeBody(`T ${how}`, bytes), () => request.end()),
      hasLength ? { 'content-length': String(bytes) } : {},
    )
    expect(answer).toEqual({
      status: 413,
      connection: 'close',
      answer: { respcode: 1, respmsg: 'the body is larger than 64 KiB' },
    })
    expect(await isStored(`T ${how}`)).toBe(false)
  })

  it('a length over the limit is refused before any byte arrives', async () => {
    const answer = await post((request) => request.flushHeaders(), {
      'content-length': String(LIMIT + 1),
    })
    expect(answer.status).toBe(413)
  })
})

describe('a slow body', () => {
  const impatient = useRig({ config: { bodyTimeoutMs: BODY_TIMEOUT_MS } })

  it.each([
    ['of which nothing arrives', ''],
    ['of which half arrives', makeBody('T-SLOW', 0).slice(0, 50)],
  ])('%s is 408, and the connection is closed', async (_what, part) => {
    const started = performance.now()
    const sendPart = (request: ClientRequest) => {
      request.flushHeaders()
      if (part) request.write(part)
    }
    const answer = await post(sendPart, {}, impatient)
    expect(answer).toEqual({
      status: 408,
      connection: 'close',
      answer: { respcode: 1, respmsg: 'the body did not arrive in time' },
    })
    expect(performance.now() - started).toBeGreaterThanOrEqual(BODY_TIMEOUT_MS - 1)
    expect(await countRows(impatient.database)).toEqual({})
  })

  it('that breaks off is not stored, and the process keeps serving', async () => {
    const broken = post((request) => {
      request.write(makeBody('T-BROKEN', 0), () => request.destroy())
    })
    await expect(broken).rejects.toThrow('socket hang up')
    expect(await postIpn(rig.service.url, signIpn({ svc_TransactionID: 'T-AFTER' }))).toEqual(
      RECEIVED,
    )
    expect(await isStored('T-BROKEN')).toBe(false)
  })
})
