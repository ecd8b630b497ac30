import { expect, it } from 'vitest'
import { readTokenAnswer } from '../../src/gateway/tokens.ts'
import { type Json, writeObject } from '../support/specification-rows.ts'

/** 5.1: the specification leaves open how the token is obtained; this is the answer of OAuth 2.0 (RFC 6749, 5.1). */
const ANSWER = { access_token: '"T1"', token_type: '"Bearer"', expires_in: '3600' }

const TOKEN = { access_token: 'T1' }
const lives = (expires_in: unknown) => ({ access_token: 'T1', expires_in })
const read = (body: string) => readTokenAnswer(Buffer.from(body))
const long = JSON.stringify('x'.repeat(8_193))

it.each<[member: string, read: object | undefined, forms: Json[]]>([
  ['access_token', TOKEN, ['"T1"']],
  ['access_token', undefined, [undefined, 'null', '""', '17', 'true', '["T1"]', '{}']],
  // A header cannot hold it.
  ['access_token', undefined, ['"two\\nlines"', '"two words"', '"thẻ"', '"\\u0000"', long]],
  ['token_type', TOKEN, ['"Bearer"', '"bearer"', undefined, 'null']],
  ['token_type', undefined, ['"mac"', '""', '17', '["Bearer"]']],
  ['expires_in', lives(3600), ['3600', '"3600"']],
  ['expires_in', lives(null), ['null']],
  ['expires_in', TOKEN, [undefined]],
  ['expires_in', undefined, ['0', '-1', '"soon"']],
  ['another', TOKEN, [undefined, 'null', '{"scope":null}', '[1]']],
])('%s is read as %j, of %j', (member, found, forms) => {
  for (const json of forms) {
    const answer = writeObject(ANSWER, { [member]: json })
    // Some deployments nest it.
    for (const body of [answer, `{"code":1,"message":"ok","data":${answer}}`]) {
      if (found) expect(read(body)).toMatchObject(found)
      else expect(read(body)).toBeUndefined()
    }
  }
})

it.each([
  ['{"data":{"access_token":"T1","expires_in":"60"}}', lives(60)],
  ['{"access_token":"T1","data":null,"scope":null,"refresh_token":null}', TOKEN],
  ['{"access_token":"T1","code":null,"message":null}', TOKEN],
])('%s is a token', (body, found) => {
  expect(read(body)).toMatchObject(found)
})

it.each(['', 'rubbish', '{"code":1,"message":"ok"}', 'null', '[]', '"T1"', '{"data":[]}'])(
  '%s is none',
  (body) => {
    expect(read(body)).toBeUndefined()
  },
)
