import { expect, it } from 'vitest'
import { hashKey } from '../../../src/access/keys.ts'
import { addTestPerson, addVisitor, makeLink, submitAs, visitAs } from '../../support/console.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' } })

const OWN = { 'sec-fetch-site': 'same-origin' }

let clients = 0
/** Sends a request from an address of its own, as a trusted proxy passes it on. */
const send = (path: string, init: RequestInit = {}, address = `203.0.113.${++clients}`) =>
  fetch(rig.service.url + path, {
    redirect: 'manual',
    ...init,
    headers: { 'x-forwarded-for': address, ...Object.fromEntries(new Headers(init.headers)) },
  })

async function inviteSomeone() {
  const person = await addTestPerson(rig.database)
  return { ...person, path: `/console/sign-in/${await makeLink(rig.database, person.personId)}` }
}

const readSession = (response: Response) =>
  /(?:^|, )((?:__Host-)?session)=([^;]*)/.exec(response.headers.get('set-cookie') ?? '')

it('without a session every page leads to the sign-in page, which explains how to get a link', async () => {
  for (const path of ['/console', '/console/account', '/console/people', '/console/anything']) {
    const response = await send(path)
    expect([response.status, response.headers.get('location')]).toEqual([303, '/console/sign-in'])
  }
  const page = await send('/console/sign-in')
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('npm run -s cli -- people link NAME')
})

it('a link shows a button and opens nothing by itself, whether it is valid or not', async () => {
  const { path, personId } = await inviteSomeone()
  const pages = await Promise.all([send(path), send(`/console/sign-in/${'x'.repeat(43)}`)])
  const texts = await Promise.all(pages.map(async (page) => await page.text()))
  for (const page of pages) {
    expect(page.status).toBe(200)
    expect(page.headers.get('set-cookie')).toBeNull()
  }
  expect(texts[0]?.replace(path, '')).toBe(
    texts[1]?.replace(`/console/sign-in/${'x'.repeat(43)}`, ''),
  )
  const sessions = await rig.database
    .sql`select from sessions where signed_in_at is not null and person_id = ${personId}`
  expect(sessions).toHaveLength(0)
})

it('the button opens a session: an HttpOnly cookie on this machine, and with __Host- and Secure elsewhere', async () => {
  const local = await send((await inviteSomeone()).path, { method: 'POST', headers: OWN })
  expect([local.status, local.headers.get('location')]).toEqual([303, '/console'])
  expect(local.headers.get('set-cookie')).toMatch(
    /^session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
  )
  const proxied = { ...OWN, 'x-forwarded-proto': 'https' }
  const remote = await send((await inviteSomeone()).path, { method: 'POST', headers: proxied })
  expect(remote.headers.get('set-cookie')).toMatch(
    /^__Host-session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  const [, name, token] = readSession(remote) ?? []
  const cookie = `${name}=${token}`
  expect((await send('/console/account', { headers: { ...proxied, cookie } })).status).toBe(200)
  // The cookie without the prefix could have been set by another host of the domain.
  const planted = { 'x-forwarded-proto': 'https', cookie: `session=${token}` }
  expect((await send('/console/account', { headers: planted })).status).toBe(303)
})

it.each([
  ['cross-site', 'cross-site'],
  ['same-site', 'same-site'],
  ['not sent by a browser', undefined],
])('a %s request opens nothing, and the link stays valid', async (_, site) => {
  const { path } = await inviteSomeone()
  const headers = site === undefined ? {} : { 'sec-fetch-site': site }
  const refused = await send(path, { method: 'POST', headers })
  expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, null])
  const opened = await send(path, { method: 'POST', headers: OWN })
  expect(opened.headers.get('set-cookie')).toContain('session=')
})

it('a link that was used leads to a page that says so, and how to get another', async () => {
  const { path } = await inviteSomeone()
  await send(path, { method: 'POST', headers: OWN })
  const again = await send(path, { method: 'POST', headers: OWN })
  expect([again.status, again.headers.get('set-cookie')]).toEqual([303, null])
  const text = await (await send(again.headers.get('location') ?? '')).text()
  expect(text).toContain('This link does not work')
  expect(text).toContain('npm run -s cli -- people link NAME')
})

it('a token that was there before the sign-in is never the session, and the session behind it ends', async () => {
  const attacker = await addVisitor(rig.database)
  const { path } = await inviteSomeone()
  const headers = { ...OWN, cookie: `session=${attacker.token}` }
  const opened = await send(path, { method: 'POST', headers })
  const [, , token] = readSession(opened) ?? []
  expect(token).toMatch(/^[\w-]{43}$/)
  expect(token).not.toBe(attacker.token)
  expect((await visitAs(rig, attacker, '/console/account')).status).toBe(303)
  const made = { ...OWN, cookie: 'session=chosen-by-an-attacker' }
  const second = await send((await inviteSomeone()).path, { method: 'POST', headers: made })
  expect(readSession(second)?.[2]).not.toBe('chosen-by-an-attacker')
  expect((await visitAs(rig, { token: 'chosen-by-an-attacker' }, '/console')).status).toBe(303)
})

it('signing out ends the session on the server, too', async () => {
  const visitor = await addVisitor(rig.database)
  const out = await submitAs(rig, visitor, '/console/sign-out')
  expect(out.headers.get('set-cookie')).toContain('session=; Max-Age=0')
  const signedOut = out.headers.get('location') ?? ''
  expect(await (await fetch(rig.service.url + signedOut)).text()).toContain('You are signed out.')
  const other = await addVisitor(rig.database)
  expect(await (await visitAs(rig, other, signedOut)).text()).not.toContain('You are signed out.')
  expect((await visitAs(rig, visitor, '/console/account')).status).toBe(303)
})

it('a person sees their own sessions, ends one, and not those of another person', async () => {
  const visitor = await addVisitor(rig.database)
  const { token: second } = { token: await openAgain(visitor.personId) }
  const page = await (await visitAs(rig, visitor, '/console/account')).text()
  const ids = [...page.matchAll(/account\/sessions\/([0-9a-f-]{36})\/end/g)].map(([, id]) => id)
  expect(ids).toHaveLength(2)
  expect(page).toContain('this browser')
  const other = await addVisitor(rig.database)
  const [, otherId] =
    /sessions\/([0-9a-f-]{36})\/end/.exec(
      await (await visitAs(rig, other, '/console/account')).text(),
    ) ?? []
  for (const id of [otherId, 'nonsense']) {
    const refused = await submitAs(rig, visitor, `/console/account/sessions/${id}/end`)
    expect(refused.status).toBe(404)
  }
  expect((await visitAs(rig, other, '/console/account')).status).toBe(200)
  const [row] = await rig.database.sql<{ id: string }[]>`
    select id from sessions where token_hash = ${hashKey(second)}`
  const ended = await submitAs(rig, visitor, `/console/account/sessions/${row?.id}/end`)
  expect(ended.status).toBe(303)
  expect((await visitAs(rig, { token: second }, '/console')).status).toBe(303)
  expect((await visitAs(rig, visitor, '/console/account')).status).toBe(200)
})

async function openAgain(personId: string): Promise<string> {
  const path = `/console/sign-in/${await makeLink(rig.database, personId)}`
  return readSession(await send(path, { method: 'POST', headers: OWN }))?.[2] ?? ''
}

it('browsers at / are led to the console, programs get the 404 of every unknown path', async () => {
  const page = await send('/', { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
  expect([page.status, page.headers.get('location')]).toEqual([302, '/console'])
  for (const accept of ['application/json', '*/*', '']) {
    const response = await send('/', { headers: { accept } })
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  }
})
