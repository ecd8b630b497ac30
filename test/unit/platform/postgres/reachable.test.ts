import { expect, it } from 'vitest'
import { isAnswer } from '../../../../src/platform/postgres/tls.ts'

it.each([
  ['EHOSTUNREACH', false],
  ['ENETUNREACH', false],
  ['ETIMEDOUT', false],
  ['CONNECT_TIMEOUT', false],
  ['ECONNREFUSED', true],
  ['ECONNRESET', true],
  ['CONNECTION_CLOSED', true],
])('a server to which a new connection fails with %s counts as reachable: %s', (code, isThere) => {
  expect(isAnswer(Object.assign(new Error('failed'), { code }))).toBe(isThere)
})
