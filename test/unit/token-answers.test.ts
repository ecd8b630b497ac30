import { expect } from 'vitest'
import { readTokenAnswer } from '../../src/gateway/tokens.ts'
import { alike, type Json, playRows, writeObject } from '../support/specification-rows.ts'

/** 5.1: the specification leaves open how the token is obtained; this is the answer of OAuth 2.0 (RFC 6749, 5.1). */
const ANSWER = { access_token: '"T1"', token_type: '"Bearer"', expires_in: '3600' }

const TOKEN = { found: { access_token: 'T1' } }
const NONE = { found: undefined }
const lives = (expires_in: unknown) => ({ found: { access_token: 'T1', expires_in } })

const read = (body: string) => ({ found: readTokenAnswer(Buffer.from(body)) })

playRows(
  '5.1, the answer with an access token',
  [
    {
      row: 'access_token',
      documented: [['"T1"', TOKEN]],
      odd: [
        ...alike<Json>(NONE, undefined, 'null', '""', '17', 'true', '["T1"]', '{}'),
        // A header cannot hold it.
        ...alike<Json>(NONE, '"two\\nlines"', '"two words"', '"thẻ"', '"\\u0000"'),
        [JSON.stringify('x'.repeat(8_193)), NONE],
      ],
    },
    {
      row: 'token_type',
      documented: [['"Bearer"', TOKEN]],
      odd: [
        ...alike<Json>(TOKEN, '"bearer"', undefined, 'null'),
        ...alike<Json>(NONE, '"mac"', '""', '17', '["Bearer"]'),
      ],
    },
    {
      row: 'expires_in',
      documented: [['3600', lives(3600)]],
      odd: [
        ['"3600"', lives(3600)],
        [undefined, TOKEN],
        ['null', lives(null)],
        ...alike<Json>(NONE, '0', '-1', '"soon"'),
      ],
    },
    {
      row: 'another',
      documented: [[undefined, TOKEN]],
      odd: alike<Json>(TOKEN, 'null', '{"scope":null}', '[1]'),
    },
  ],
  (json, member) => {
    const answer = writeObject(ANSWER, { [member]: json })
    const found = read(answer)
    // Some deployments nest it.
    expect(read(`{"code":1,"message":"ok","data":${answer}}`)).toEqual(found)
    return found
  },
)

playRows(
  '5.1, the body of the answer',
  [
    {
      row: 'a token',
      documented: [['{"access_token":"T1","token_type":"Bearer","expires_in":3600}', TOKEN]],
      odd: [
        ['{"data":{"access_token":"T1","expires_in":"60"}}', lives(60)],
        ['{"access_token":"T1","data":null,"scope":null,"refresh_token":null}', TOKEN],
        ['{"access_token":"T1","code":null,"message":null}', TOKEN],
        ...alike(
          NONE,
          '',
          'rubbish',
          '{"code":1,"message":"ok"}',
          'null',
          '[]',
          '"T1"',
          '{"data":[]}',
        ),
      ],
    },
  ],
  read,
)
