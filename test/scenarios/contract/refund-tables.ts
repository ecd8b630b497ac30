/**
 * What order systems see of an answer to REFUND, for each row of the specification's sections 2.5, 4.3.2 and 7: the
 * documented form first, then odd ones. Written before the service was asked.
 */

export type Answered = {
  given: string
  /** The body of the answer, and its HTTP status, 200 unless given. */
  body: string
  http?: number
  sees: Readonly<Record<string, unknown>>
}

export type AnsweredRow = { row: string; documented: Answered; odd: readonly Answered[] }

const answer = (data: string, code = '0', message = '"Success"') =>
  `{"svc_ResponseCode":${code},"svc_ResponseData":${data},"svc_ResponseMsg":${message}}`

const accepted = (id: string | null) => ({
  status: 'accepted',
  gatewayRefundId: id,
  gatewayReference: id,
  gatewayReferenceSource: id === null ? null : 'answer',
  failure: null,
})

/** Nobody knows whether the money moved: the refund stays reserved, and is resolved by evidence. */
const unknown = (given: string, body: string, http?: number): Answered => ({
  given,
  body,
  ...(http === undefined ? {} : { http }),
  sees: { status: 'unknown', failure: null, gatewayReference: null },
})

/** A refusal proves nothing yet: it is shown, and a later query has to confirm it. */
const refused = (
  given: string,
  code: string,
  message: string,
  shown: string | RegExp,
): Answered => ({
  given,
  body: answer('{}', code, message),
  sees: { status: 'unknown', failure: { source: 'gateway', code, message: shown } },
})

export const REFUND_ANSWER_ROWS: readonly AnsweredRow[] = [
  {
    row: '2.5 transId',
    documented: {
      given: 'a text',
      body: answer('{"transId":"5SYNM1OELUND"}'),
      sees: accepted('5SYNM1OELUND'),
    },
    odd: [
      { given: 'a number', body: answer('{"transId":4711}'), sees: accepted('4711') },
      {
        given: 'a long number',
        body: answer('{"transId":9007199254740993}'),
        sees: accepted('9007199254740993'),
      },
      { given: 'nothing', body: answer('{}'), sees: accepted(null) },
      { given: 'null', body: answer('{"transId":null}'), sees: accepted(null) },
      { given: 'an empty text', body: answer('{"transId":""}'), sees: accepted(null) },
      { given: 'a list', body: answer('{"transId":["A"]}'), sees: accepted(null) },
      {
        given: 'a control character',
        body: answer('{"transId":"A\\u0000"}'),
        sees: accepted(null),
      },
    ],
  },
  {
    row: '4.3.2 svc_ResponseData',
    documented: { given: 'an object', body: answer('{"transId":"A"}'), sees: accepted('A') },
    odd: [
      { given: 'null', body: answer('null'), sees: accepted(null) },
      { given: 'a list', body: answer('[{"transId":"A"}]'), sees: accepted(null) },
      { given: 'a text', body: answer('"A"'), sees: accepted(null) },
      { given: 'nothing', body: '{"svc_ResponseCode":0}', sees: accepted(null) },
      {
        given: 'further members',
        body: answer('{"transId":"A","bank":{"ref":1}}'),
        sees: accepted('A'),
      },
    ],
  },
  {
    row: '4.3.2 svc_ResponseCode',
    documented: { given: '0', body: answer('{"transId":"A"}'), sees: accepted('A') },
    odd: [
      { given: '0.0', body: answer('{"transId":"A"}', '0.0'), sees: accepted('A') },
      unknown('a text', answer('{"transId":"A"}', '"0"')),
      unknown('null', answer('{"transId":"A"}', 'null')),
      unknown('nothing', '{"svc_ResponseData":{"transId":"A"}}'),
      unknown('no JSON', '<html>ok</html>'),
      unknown('an empty body', ''),
      unknown('code 0 with HTTP 500', answer('{"transId":"A"}'), 500),
      unknown('code 0 with HTTP 302', answer('{"transId":"A"}'), 302),
    ],
  },
  {
    row: '7 a refusal with its message',
    documented: refused('a code and a message', '33', '"Invalid amount"', 'Invalid amount'),
    odd: [
      refused('a card number', '33', '"card 4111111111111111"', /^card 411111\*+1111$/),
      refused('a published code without a message', '33', '""', /^invalid amount \(published/),
      refused('a published code with a null message', '19', 'null', /^duplicate merchant trans/),
      refused('a code of no table', '4711', '"Không đủ số dư"', 'Không đủ số dư'),
      refused('a code of no table without a message', '4711', '""', ''),
      refused('waiting', '9', '"Waiting"', 'Waiting'),
      refused('processing', '99', '""', /^processing \(published/),
      refused('a negative code', '-1', '""', /^expired \(published/),
    ],
  },
]
