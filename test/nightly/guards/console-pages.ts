import type { Guard } from './guard.ts'

export const CONSOLE_PAGES: readonly Guard[] = [
  {
    file: 'src/console/session.ts',
    text: 'path: readPath(c) }, kept',
    mutation: 'path: c.req.path }, kept',
    test: 'test/console/odd-ids.test.ts',
    claim: 'a payment with the id P-đ says why a confirmed refund was refused',
    control: 'a payment with the id P%1 says why a confirmed refund was refused',
  },
  {
    file: 'src/console/session.ts',
    text: '{ action: readPath(c), fields,',
    mutation: '{ action: c.req.path, fields,',
    test: 'test/console/odd-ids.test.ts',
    claim: 'a payment with the id P-đ gets the form of an ended session back after the sign-in',
    control: 'a payment with the id P%1 gets the form of an ended session back after the sign-in',
  },
  {
    file: 'src/console/page.ts',
    text: '{ action: readPath(c), fields,',
    mutation: '{ action: c.req.path, fields,',
    test: 'test/console/odd-ids.test.ts',
    claim:
      'a payment with the id P-đ gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
    control:
      'a payment with the id P%1 gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
  },
  {
    file: 'src/console/page.ts',
    text: 'readPath(c).split(',
    mutation: 'c.req.path.split(',
    test: 'test/console/odd-ids.test.ts',
    claim:
      'a payment with the id P-đ gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
    control:
      'a payment with the id P%1 gets its wrong form back, filled in and with what is wrong, on the page as it was opened',
  },
  {
    file: 'src/console/forms.tsx',
    text: 'evidence={isOwn ? evidence : []}',
    mutation: "evidence={isOwn || action !== '' ? evidence : []}",
    test: 'test/console/tasks/inferred-otherwise.test.ts',
    claim:
      'a refund whose success was only concluded, and that a person says failed asks for the box beside that decision, not in the form that says that it happened',
    control:
      'a refund whose success was only concluded, and that a person says failed is offered both at first, without a box',
  },
]
