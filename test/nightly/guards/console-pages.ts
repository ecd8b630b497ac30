import { type Guard, guards } from './guard.ts'

export const CONSOLE_PAGES: readonly Guard[] = [
  ...guards({ file: 'src/console/session.ts', test: 'test/console/odd-ids.test.ts' }, [
    {
      text: 'personId: id, path: readPath(c) }',
      mutation: 'personId: id, path: c.req.path }',
      claim: 'a payment with the id P-đ says why a confirmed refund was refused',
      control: 'a payment with the id P%1 says why a confirmed refund was refused',
    },
    {
      text: '{ action: readPath(c), fields,',
      mutation: '{ action: c.req.path, fields,',
      claim: 'a payment with the id P-đ gets the form of an ended session back after the sign-in',
      control: 'a payment with the id P%1 gets the form of an ended session back after the sign-in',
    },
  ]),
  ...guards({ file: 'src/console/page.ts', test: 'test/console/odd-ids.test.ts' }, [
    {
      text: '{ action: readPath(c), fields,',
      mutation: '{ action: c.req.path, fields,',
      claim:
        'a payment with the id P-đ gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
      control:
        'a payment with the id P%1 gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
    },
    {
      text: 'readPath(c).split(',
      mutation: 'c.req.path.split(',
      claim:
        'a payment with the id P-đ gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
      control:
        'a payment with the id P%1 gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
    },
  ]),
  {
    file: 'src/console/assets/console.js',
    text: '&& !dataset.sensitive &&',
    mutation: "&& dataset.sensitive !== '' &&",
    test: 'test/console/stories.test.ts',
    claim:
      'the form of a refund Back shows what was typed, but the account that receives the refund is asked for again',
    control: 'the form of a refund what was typed wrongly is said where the focus is',
  },
  ...guards({ test: 'test/console/tasks/refund.test.ts' }, [
    {
      file: 'src/console/forms.tsx',
      text: 'evidence={isOwn ? evidence : []}',
      mutation: "evidence={isOwn || action !== '' ? evidence : []}",
      claim:
        'a refund whose success was only concluded asks for the box beside the decision that it failed, not in the form that says that it happened',
      control:
        'a refund whose success was only concluded is offered at first as what happened or as a decision, without a box',
    },
    {
      file: 'src/console/words.ts',
      text: '&& refund.attempts === 0 && !settings',
      mutation: '&& refund.attempts < 0 && !settings',
      claim:
        'what a page says happens next of a refund that waits while sending is switched off is not that it is sent',
      control:
        'what a page says happens next of a held refund that is approved is not that it is sent within moments',
    },
    {
      file: 'src/console/health.tsx',
      text: "t(sendsRefunds ? 'health.sent'",
      mutation: "t(sendsRefunds || !stop ? 'health.sent'",
      claim:
        'what a page says happens next of a refund that waits while sending is switched off is not that it is sent',
      control:
        'what a page says happens next of a held refund that is approved is not that it is sent within moments',
    },
    {
      file: 'src/console/texts/catalogue.ts',
      text: "['Approved. What happens next stands below.'",
      mutation: "['Approved. The refund is sent to the gateway within moments.'",
      claim:
        'what a page says happens next of a held refund that is approved is not that it is sent within moments',
      control:
        'what a page says happens next of a refund that waits while sending is switched off is not that it is sent',
    },
  ]),
  {
    file: 'src/console/task-sections.tsx',
    text: '!withdrawn.has(refund.refundId)',
    mutation: '!withdrawn.has(refund.transactionId)',
    test: 'test/console/tasks/list.test.ts',
    claim:
      'what waits for a person of the refunds of a person that did not arrive are not those that they cancelled themselves',
    control:
      'what waits for a person of the refunds of a person that did not arrive are those that somebody else cancelled',
  },
  {
    file: 'src/console/audit-list.ts',
    text: 'return actor === name && ',
    mutation: "return (actor === name || actor !== '') && ",
    test: 'test/console/tasks/list.test.ts',
    claim:
      'what waits for a person of the refunds of a person that did not arrive are those that somebody else cancelled',
    control:
      'what waits for a person of the refunds of a person that did not arrive are not those that they cancelled themselves',
  },
  {
    file: 'src/console/audit-list.ts',
    text: 'order by a.operation = ${SYNC}, a.at',
    mutation: "order by a.operation = ${SYNC + '-'}, a.at",
    test: 'test/console/story/story.test.ts',
    claim:
      'the history tells who asked for a refund after an order system has asked the gateway 200 times',
    control: 'the history tells who asked for a refund before an order system asks the gateway',
  },
  {
    file: 'src/console/timeline.ts',
    text: 'amount: formatMoney(amount, currency) }),',
    mutation: "amount: formatMoney(amount, currency && 'VND') }),",
    test: 'test/unit/console/story/words.test.ts',
    claim:
      'an entry of the timeline in words shows the amount of a notification in its own currency: USD',
    control:
      'an entry of the timeline in words shows the amount of a notification in its own currency: null',
  },
  {
    file: 'src/access/sessions.ts',
    text: '`select from sessions where id = ${id} and person_id = ${personId}`',
    mutation:
      '`select from sessions where id = ${id} and person_id = ${personId} and ended_at = now()`',
    test: 'test/console/people/people.test.ts',
    claim: 'a double click that ends a session is told what the first one did',
    control: 'a double click that ends the access of a person is told what the first one did',
  },
  {
    file: 'src/console/people.tsx',
    text: 'findPathPerson(ctx.db.sql, c, true)',
    mutation: 'findPathPerson(ctx.db.sql, c, false)',
    test: 'test/console/people/people.test.ts',
    claim: 'a double click that ends the access of a person is told what the first one did',
    control: 'a double click that ends a session is told what the first one did',
  },
  {
    file: 'src/console/view.ts',
    text: 'return winter === summer && winter ?',
    mutation: 'return summer && winter ?',
    test: 'test/console/language.test.ts',
    claim:
      'the language of a page has times that are said in the offset that they are written in: 2026-07-01T10:00:00Z',
    control:
      'the language of a page has times that are said in the offset that they are written in: 2026-01-01T10:00:00Z',
  },
  {
    file: 'src/console/health.tsx',
    text: '      .listPaused()\n',
    mutation: '      .list()\n',
    test: 'test/console/health.test.ts',
    claim:
      'the health page of an account whose calls are paused says so no more once no call has tested the gateway for long',
    control:
      'the health page of an account whose calls are paused says so while the next one waits',
  },
]
